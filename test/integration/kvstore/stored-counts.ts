import type { Redis } from 'ioredis';

/** What a server holds for these keys, asked by the test's own client; 0 for what is absent. */
export async function storedCounts(control: Redis, keys: readonly string[]): Promise<readonly number[]> {
  const counts: number[] = [];
  for (let begin = 0; begin < keys.length; begin += 1000) {
    const some = keys.slice(begin, begin + 1000);
    if (some.length > 0) counts.push(...(await control.mget(...some)).map(Number));
  }
  return counts;
}
