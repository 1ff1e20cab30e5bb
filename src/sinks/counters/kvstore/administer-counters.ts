import type { CounterAdministration, CounterKey, StoredCounter } from '../../../streams/ports/counter-administration';
import type { Expiry } from '../counting';
import { isReply, replyCode } from './store-error';
import { type SendCommand, readResult } from './commands';
import type { Store } from './instance';

/**
 * Administers counters with plain commands, which every server allows. They are not atomic: an addition between them is counted before
 * or after the change, never lost, except in the count that is returned.
 *
 * @param storeOf the instance that has a counter
 */
export function counterAdministration(storeOf: (counter: CounterKey) => Store, expiry: Expiry): CounterAdministration {
  return {
    readCounter: (counter) => storeOf(counter).run(counter.key, (send) => read(send, counter.key)),
    setCounter: (counter, count) =>
      storeOf(counter).run(counter.key, async (send) => {
        const before = await read(send, counter.key, MENDED);
        await set(send, counter.key, { count: String(count), expiry: String(expiry.of(counter.windowSeconds)) });
        return before;
      }),
    clearCounter: (counter) =>
      storeOf(counter).run(counter.key, async (send) => {
        const before = await read(send, counter.key, MENDED);
        checked(await send('DEL', counter.key));
        return before;
      }),
  };
}

/** A value that is no count counts as 0: an operator mends it by setting or clearing it. */
const MENDED = true;

async function read(send: SendCommand, key: string, isMended = false): Promise<StoredCounter> {
  const [reply, timeToLive] = await Promise.all([send('GET', key), send('TTL', key)]);
  const count = readResult(reply);
  const isNoCount = count instanceof Error && (!isReply(count) || replyCode(count) === 'WRONGTYPE');
  if (count instanceof Error && !(isMended && isNoCount)) throw count;
  const seconds = Number(checked(timeToLive));
  return { count: typeof count === 'number' ? Math.max(0, count) : 0, timeToLive: seconds >= 0 ? seconds : null };
}

async function set(
  send: SendCommand,
  key: string,
  { count, expiry }: { readonly count: string; readonly expiry: string },
): Promise<void> {
  if (checked(await send('SET', key, count, 'XX', 'KEEPTTL')) !== null) {
    if (checked(await send('TTL', key)) === -1) checked(await send('EXPIRE', key, expiry));
    return;
  }
  const isCreated = checked(await send('SET', key, count, 'NX', 'EX', expiry)) !== null;
  // Another process has created it in the meantime.
  if (!isCreated) checked(await send('SET', key, count, 'XX', 'KEEPTTL'));
}

/** @throws the error that the server replied with */
function checked(reply: unknown): unknown {
  if (isReply(reply)) throw reply;
  return reply;
}
