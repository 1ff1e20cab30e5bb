import type { Redis } from 'ioredis';

/** The counts that a server holds for these keys, read by the test's own client; 0 for an absent key. */
export async function storedCounts(control: Redis, keys: readonly string[]): Promise<readonly number[]> {
  const counts: number[] = [];
  for (let begin = 0; begin < keys.length; begin += 1000) {
    const part = keys.slice(begin, begin + 1000);
    if (part.length > 0) counts.push(...(await control.mget(...part)).map(Number));
  }
  return counts;
}
