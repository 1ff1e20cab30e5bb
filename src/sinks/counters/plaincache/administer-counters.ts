import { DecisionError } from '../../../limiter/decision-error';
import type { CounterAdministration, CounterKey, StoredCounter } from '../../../streams/ports/counter-administration';
import type { Expiry } from '../counting';
import { type ReadCounter, type StoredValue, get, metaGet, remove, set } from './commands';
import type { Connection, Request } from './connection';
import { type WireKey, wireKey } from './keys';
import type { Node } from './node';

/** An absent key, or one whose value is no number. */
const NOTHING: StoredCounter = { count: 0, timeToLive: null };

/** Administers counters between the batches of their servers. @param nodeOf undefined while the servers are not known */
export function counterAdministration(
  nodeOf: (key: WireKey) => Node | undefined,
  expiry: Expiry,
): CounterAdministration {
  async function administer<T>(
    { key }: CounterKey,
    run: (connection: Connection, wire: WireKey) => Promise<T>,
  ): Promise<T> {
    const wire = wireKey(key);
    const node = nodeOf(wire);
    if (node === undefined) throw new DecisionError('store_failed', 'the memcached servers are not known yet');
    return node.administer((connection) => run(connection, wire));
  }

  return {
    readCounter: (counter) => administer(counter, async (connection, key) => counterOf(await read(connection, key))),
    setCounter: (counter, count) =>
      administer(counter, async (connection, key) => {
        const before = await read(connection, key);
        const timeToLive = before?.timeToLive ?? null;
        // The expiry is sent in whole seconds, and one is added to it.
        const lifetime = timeToLive === null ? expiry.of(counter.windowSeconds) : Math.max(1, timeToLive - 1);
        await replace(connection, set(key, count, lifetime));
        return counterOf(before);
      }),
    clearCounter: (counter) =>
      administer(counter, async (connection, key) => {
        const before = await read(connection, key);
        await replace(connection, remove(key));
        return counterOf(before);
      }),
  };
}

/** The key; undefined when it is absent. */
async function read(connection: Connection, key: WireKey): Promise<ReadCounter | undefined> {
  const reply = await connection.read(metaGet(key));
  if (reply === 'absent') return undefined;
  if (reply !== 'unsupported') return reply;
  const values = new Map<WireKey, StoredValue>();
  await Promise.all(get(new Set([key]), values).map((request) => connection.read(request)));
  return values.has(key) ? { count: values.get(key), timeToLive: null } : undefined;
}

function counterOf(counter: ReadCounter | undefined): StoredCounter {
  return counter === undefined ? NOTHING : { count: counter.count ?? 0, timeToLive: counter.timeToLive };
}

async function replace(connection: Connection, request: Request<true | Error>): Promise<void> {
  const reply = await connection.write(request);
  if (reply instanceof Error)
    throw new DecisionError('store_failed', 'a memcached server rejected the change', { cause: reply });
}
