/**
 * Pseudo-random numbers from 0 to 1 that are the same in every run with the same seed: `WEIR_SEED`, or `name` by default. The
 * title of a failed test includes the seed.
 */
export function seededRandom(name: string): () => number {
  let state = 0;
  for (const character of process.env['WEIR_SEED'] ?? name)
    state = (Math.imul(state, 31) + character.charCodeAt(0)) | 0;
  return () => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
