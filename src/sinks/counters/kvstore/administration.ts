import type { Counted } from '../../../counting/operation';
import type { CounterAdministration, StoredCounter } from '../../../streams/ports/counter-administration';
import { lifetimeOf, randomPart } from '../expiry';
import type { SendCommand } from './commands';
import { readResult } from './replies';
import { isReply, replyCode } from './store-error';

export interface CommandRunner {
  /**
   * Runs commands on one key, on the server that holds it. They are run again from the first one when the key has
   * moved; an error reply that they throw is the error of this call alone.
   *
   * Rejects with a DecisionError.
   */
  run<T>(key: string, commands: (send: SendCommand) => Promise<T>): Promise<T>;
}

/**
 * Administers counters with plain commands, which every server allows. They are not atomic: an addition between them is
 * counted before or after the change, never lost, except in the count that is returned.
 *
 * @param storeOf the instance that has a counter
 */
export function counterAdministration(
  storeOf: (counter: Counted) => CommandRunner,
  jitter: number,
): CounterAdministration {
  return {
    readCounter: (counter) => storeOf(counter).run(counter.key, (send) => read(send, counter.key)),
    changeCounter: (counter, count) => {
      const { key, limit } = counter;
      return storeOf(counter).run(key, async (send) => {
        const before = await read(send, key, { invalidAsZero: true });
        const expiry = String(lifetimeOf(limit) + randomPart(jitter));
        if (count === null) checked(await send('DEL', key));
        else await set(send, key, { count: String(count), expiry });
        return before;
      });
    },
  };
}

/** @param invalidAsZero a value that is no count counts as 0: it is about to be set or cleared */
async function read(
  send: SendCommand,
  key: string,
  { invalidAsZero }: { readonly invalidAsZero: boolean } = { invalidAsZero: false },
): Promise<StoredCounter> {
  const [reply, timeToLive] = await Promise.all([send('GET', key), send('TTL', key)]);
  const count = readResult(reply);
  const isNoCount = count instanceof Error && (!isReply(count) || replyCode(count) === 'WRONGTYPE');
  if (count instanceof Error && !(invalidAsZero && isNoCount)) throw count;
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
