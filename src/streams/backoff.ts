/** Milliseconds to wait after so many consecutive failures, which count from 1. */
export type Backoff = (failures: number) => number;

export interface BackoffOptions {
  /** The wait after the first failure. */
  readonly initial: number;
  /** The longest wait. */
  readonly max: number;
  /** Each wait is the previous one times this; 2 if undefined. */
  readonly factor?: number;
  /** The bounds of the random wait, so that processes do not retry in lockstep; undefined: it is not random. */
  readonly jitter?: (wait: number) => readonly [from: number, to: number];
  /** Returns a number from 0 to 1; undefined: `Math.random`. */
  readonly random?: () => number;
}

/** Waits that grow with each consecutive failure. */
export function backoff({ initial, max, factor = 2, jitter, random }: BackoffOptions): Backoff {
  return (failures) => {
    const wait = Math.min(initial * factor ** (failures - 1), max);
    if (jitter === undefined) return wait;
    const [from, to] = jitter(wait);
    return from + (random ?? Math.random)() * (to - from);
  };
}
