import { DecisionError } from '../../../../limiter/decision-error';
import type {
  CounterAdministration,
  CounterKey,
  StoredCounter,
} from '../../../../streams/ports/counter-administration';
import type { Expiry } from '../../expiry';
import type { Node } from '../node';
import type { NodeConnections } from '../nodes/node-connections';
import { type WireKey, wireKey } from '../protocol/legal-key';
import { CounterReader, type ReadCounter, metaGetCommand } from '../protocol/read-counter';
import { ValuesReader, getCommands } from '../protocol/read-values';
import { ReplacedReader, deleteCommand, setCommand } from '../protocol/replace-counter';

/** An absent key, or one whose value is no number. */
const NOTHING: StoredCounter = { count: 0, timeToLive: null };

/** Administers counters between the batches of their servers. @param nodeOf undefined while the servers are not known */
export function counterAdministration(
  nodeOf: (key: WireKey) => Node | undefined,
  expiry: Expiry,
): CounterAdministration {
  async function administer<T>(
    { key }: CounterKey,
    run: (connections: NodeConnections, wire: WireKey) => Promise<T>,
  ): Promise<T> {
    const wire = wireKey(key);
    const node = nodeOf(wire);
    if (node === undefined) throw new DecisionError('store_failed', 'the memcached servers are not known yet');
    return node.administer((connections) => run(connections, wire));
  }

  return {
    readCounter: (counter) => administer(counter, async (connections, key) => counterOf(await read(connections, key))),
    setCounter: (counter, count) =>
      administer(counter, async (connections, key) => {
        const before = await read(connections, key);
        const timeToLive = before?.timeToLive ?? null;
        // The expiry is sent in whole seconds, and one is added to it.
        const lifetime = timeToLive === null ? expiry.of(counter.windowSeconds) : Math.max(1, timeToLive - 1);
        await replace(connections, setCommand(key, { count, lifetime }, Date.now()));
        return counterOf(before);
      }),
    clearCounter: (counter) =>
      administer(counter, async (connections, key) => {
        const before = await read(connections, key);
        await replace(connections, deleteCommand(key));
        return counterOf(before);
      }),
  };
}

/** The key; undefined when it is absent. */
async function read(connections: NodeConnections, key: WireKey): Promise<ReadCounter | undefined> {
  const reply = await connections.read(metaGetCommand(key), () => new CounterReader());
  if (reply === 'absent') return undefined;
  if (reply !== 'unsupported') return reply;
  const keys = new Set([key]);
  const values = await connections.read(getCommands(keys), () => new ValuesReader(keys));
  return values.has(key) ? { count: values.get(key), timeToLive: null } : undefined;
}

function counterOf(counter: ReadCounter | undefined): StoredCounter {
  return counter === undefined ? NOTHING : { count: counter.count ?? 0, timeToLive: counter.timeToLive };
}

async function replace(connections: NodeConnections, command: string): Promise<void> {
  const reply = await connections.write(command, new ReplacedReader());
  if (reply instanceof Error)
    throw new DecisionError('store_failed', 'a memcached server rejected the change', { cause: reply });
}
