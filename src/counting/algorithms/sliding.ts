import type { Algorithm, AlgorithmLimit, Outcome, Purpose, Returnable, WindowsState } from './algorithm';
import { CountedHits } from './fixed';

/** The most hits of a window: a store has more in one number with that of the window. */
export const MOST_IN_WINDOW = 2 ** 32 - 1;

/**
 * The hits of the current window of the clock, and those of the window before, weighted with the part of it that a
 * window which ends now would cover. At most 2 × `requestsPerUnit` − 1 can pass in any interval as long as the window:
 * so many when all of a window have passed at its end.
 */
export class SlidingWindow extends CountedHits implements Algorithm {
  readonly name = 'sliding_window';
  /** The length of a window in milliseconds. */
  readonly #window: number;

  constructor(limit: AlgorithmLimit) {
    super(limit, 2 * limit.lengthSeconds);
    this.#window = limit.lengthSeconds * 1000;
  }

  override at({ previous, current, now: before }: WindowsState, now: number): WindowsState {
    const passed = this.#numberOf(now) - this.#numberOf(before);
    if (passed === 0) return { previous, current, now };
    if (passed === 1) return { previous: current, current: 0, now };
    // The clock has gone back into the window before.
    if (passed === -1) return { previous: 0, current: previous, now };
    return this.empty(now);
  }

  reservable(state: WindowsState): number {
    return Math.max(0, this.requestsPerUnit - this.#used(state));
  }

  reserve({ previous, current, now }: WindowsState, hits: number): WindowsState {
    return { previous, current: current + hits, now };
  }

  override windowAt({ now }: WindowsState): Returnable {
    // The present millisecond may be nearly over.
    return { number: this.#numberOf(now), rest: this.#window - this.#elapsed(now) - 1 };
  }

  takesBack(_hits: number, window: number, { now }: WindowsState): boolean {
    return this.#numberOf(now) === window;
  }

  isPossible({ previous, current }: WindowsState): boolean {
    return isUint32(previous) && isUint32(current);
  }

  decide(state: WindowsState, hits: number, purpose?: Purpose): Outcome {
    const { now } = state;
    const limit = this.requestsPerUnit;
    const isOver = purpose === undefined ? hits > 0 && this.#used(state) + hits > limit : this.#used(state) >= limit;
    if (isOver && purpose !== 'report') return this.#denied(state, purpose === undefined ? hits : 1);
    const sum = state.current + hits;
    const current = Math.min(MOST_IN_WINDOW, Math.max(0, sum));
    const previous = Math.max(0, state.previous + Math.min(0, sum));
    const isSame = previous === state.previous && current === state.current;
    const after = isSame ? state : { previous, current, now };
    return isOver ? this.#denied(after, 1) : this.#outcome(after, true, Math.ceil(this.#untilNone(after) / 1000));
  }

  /** @param hits that will fit after the reset */
  #denied(state: WindowsState, hits: number): Outcome {
    return this.#outcome(state, false, Math.max(1, Math.ceil(this.#wait(state, hits) / 1000)));
  }

  #outcome(state: WindowsState, isAllowed: boolean, secondsUntilReset: number): Outcome {
    const used = this.#used(state);
    return {
      isAllowed,
      used,
      remaining: Math.max(0, this.requestsPerUnit - used),
      secondsUntilReset,
      retryAfterSeconds: used < this.requestsPerUnit ? 0 : Math.floor(this.#wait(state, 1) / 1000),
      state,
    };
  }

  /** The order of the operations is that of the script: above 2^53, both round alike. */
  #used({ previous, current, now }: WindowsState): number {
    return Math.ceil((previous * (this.#window - this.#elapsed(now))) / this.#window) + current;
  }

  /**
   * The milliseconds until hits that are denied fit, if there are no others. Of more than ever fit, until no others
   * count; as with a limit of 0 mostly none do, at least until the window of the clock ends, so that callers do not
   * come back at once.
   */
  #wait(state: WindowsState, hits: number): number {
    const { previous, current, now } = state;
    const elapsed = this.#elapsed(now);
    const limit = this.requestsPerUnit;
    if (hits > limit) return Math.max(this.#untilNone(state), limit === 0 ? this.#window - elapsed : 0);
    if (current + hits <= limit) return this.#untilWeight(limit - current - hits, previous) - elapsed;
    return this.#window - elapsed + this.#untilWeight(limit - hits, current);
  }

  /** The milliseconds until no hits count, if there are no others. */
  #untilNone({ previous, current, now }: WindowsState): number {
    if (previous === 0 && current === 0) return 0;
    return (current > 0 ? 2 : 1) * this.#window - this.#elapsed(now);
  }

  /** After how many milliseconds of the window after it, the hits of a window weigh this much, which is less. */
  #untilWeight(weight: number, hits: number): number {
    return Math.ceil((this.#window * (hits - weight)) / hits);
  }

  #elapsed(now: number): number {
    return Math.floor(now / 1000) % this.#window;
  }

  #numberOf(now: number): number {
    return Math.floor(Math.floor(now / 1000) / this.#window);
  }
}

/** Whether it can be the hits of a window. */
function isUint32(value: number): boolean {
  return value >>> 0 === value;
}
