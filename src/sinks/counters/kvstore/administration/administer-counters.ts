import type {
  CounterAdministration,
  CounterKey,
  StoredCounter,
} from '../../../../streams/ports/counter-administration';
import type { Expiry } from '../../expiry';
import { isReply, replyCode } from '../connections/store-error';
import { type SendCommand, type StepResult, readResult } from '../counting/plain-commands';
import type { Store } from '../stores/instance';

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
      storeOf(counter).run(counter.key, (send) =>
        set(send, counter.key, { count, expiry: expiry.of(counter.windowSeconds) }),
      ),
    clearCounter: (counter) =>
      storeOf(counter).run(counter.key, async (send) => {
        const before = await readAny(send, counter.key);
        checked(await send('DEL', counter.key));
        return before;
      }),
  };
}

async function read(send: SendCommand, key: string): Promise<StoredCounter> {
  const [reply, timeToLive] = await Promise.all([send('GET', key), send('TTL', key)]);
  const count = readResult(reply);
  if (count instanceof Error) throw count;
  return counterOf(count, timeToLive);
}

/** A value that is no count counts as 0: an operator repairs it by setting or clearing it. */
async function readAny(send: SendCommand, key: string): Promise<StoredCounter> {
  const [reply, timeToLive] = await Promise.all([send('GET', key), send('TTL', key)]);
  if (isReply(reply) && replyCode(reply) !== 'WRONGTYPE') throw reply;
  return counterOf(isReply(reply) ? 0 : readResult(reply), timeToLive);
}

function counterOf(count: StepResult, timeToLive: unknown): StoredCounter {
  const seconds = Number(checked(timeToLive));
  return { count: count instanceof Error ? 0 : Math.max(0, count), timeToLive: seconds >= 0 ? seconds : null };
}

async function set(
  send: SendCommand,
  key: string,
  { count, expiry }: { readonly count: number; readonly expiry: number },
): Promise<StoredCounter> {
  const before = await readAny(send, key);
  const isSet = checked(await send('SET', key, String(count), 'XX', 'KEEPTTL')) !== null;
  if (isSet) {
    if (checked(await send('TTL', key)) === -1) checked(await send('EXPIRE', key, String(expiry)));
    return before;
  }
  const isCreated = checked(await send('SET', key, String(count), 'NX', 'EX', String(expiry))) !== null;
  // Another process has created it in the meantime.
  if (!isCreated) checked(await send('SET', key, String(count), 'XX', 'KEEPTTL'));
  return before;
}

/** @throws the error that the server replied with */
function checked(reply: unknown): unknown {
  if (isReply(reply)) throw reply;
  return reply;
}
