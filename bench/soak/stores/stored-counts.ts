import type { Redis } from 'ioredis';
import { COUNTED } from '../rules';

const BATCH = 10_000;

/** The counts of the values in the store, by value. */
export async function storedCounts(control: Redis): Promise<ReadonlyMap<number, number>> {
  const counts = new Map<number, number>();
  let cursor = '0';
  do {
    const [next, keys] = await control.scan(cursor, 'MATCH', `*_${COUNTED}_v-*`, 'COUNT', BATCH);
    cursor = next;
    if (keys.length === 0) continue;
    const values = await control.mget(keys);
    for (const [index, key] of keys.entries()) {
      const value = Number(/_v-(\d+)_/.exec(key)?.[1]);
      // SCAN may return a key twice.
      counts.set(value, Number(values[index]));
    }
  } while (cursor !== '0');
  return counts;
}
