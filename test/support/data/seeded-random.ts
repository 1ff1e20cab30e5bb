/** A 32-bit seed that is the same in every run: of `WEIR_SEED`, any text, or of `name` by default. */
export function seedOf(name: string): number {
  let seed = 0;
  for (const character of process.env['WEIR_SEED'] ?? name) seed = (Math.imul(seed, 31) + character.charCodeAt(0)) | 0;
  return seed;
}

/** Pseudo-random numbers from 0 to 1 of the seed of `name`. The title of a failed test includes the seed. */
export function seededRandom(name: string): () => number {
  let state = seedOf(name);
  return () => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Integers from 0 to below a bound. */
export function integersOf(seed: string): (bound: number) => number {
  const random = seededRandom(seed);
  return (bound) => Math.floor(random() * bound);
}
