import { isWholeNumber } from '../../text/plain-number';
import type { Algorithm, AlgorithmLimit, Outcome, Purpose, WindowsState } from './algorithm';

/**
 * How many reservations are open at a time, each of which counts 1. The store counts them, so that one is free in the
 * moment in which it expires; calls only ask whether another one could be opened.
 */
export class Concurrent implements Algorithm {
  readonly name = 'max_concurrent';
  readonly burst = undefined;
  readonly requestsPerUnit: number;
  readonly lengthSeconds: number;
  readonly capacity: number;
  readonly lifetime: number;

  constructor({ requestsPerUnit, lengthSeconds }: AlgorithmLimit) {
    this.requestsPerUnit = requestsPerUnit;
    this.lengthSeconds = lengthSeconds;
    this.capacity = requestsPerUnit;
    this.lifetime = lengthSeconds;
  }

  empty(now: number): WindowsState {
    return { previous: 0, current: 0, now };
  }

  at({ current }: WindowsState, now: number): WindowsState {
    return { previous: 0, current, now };
  }

  reservable(): number {
    return 0;
  }

  reserve(state: WindowsState): WindowsState {
    return state;
  }

  windowAt(): undefined {
    return undefined;
  }

  takesBack(): boolean {
    return false;
  }

  isPossible({ previous, current }: WindowsState): boolean {
    return previous === 0 && isWholeNumber(current);
  }

  /** @param hits without a purpose, a positive number opens a reservation, and 0 only reads */
  decide(state: WindowsState, hits: number, purpose?: Purpose): Outcome {
    const { current } = state;
    const opens = purpose === undefined && hits > 0;
    const isAllowed = current < this.requestsPerUnit || (hits <= 0 && purpose !== 'ask') || hits < 0;
    const used = opens && isAllowed ? current + 1 : current;
    return {
      isAllowed,
      used,
      remaining: Math.max(0, this.requestsPerUnit - used),
      // Nobody knows when a reservation ends.
      secondsUntilReset: 0,
      retryAfterSeconds: 0,
      state: used === current ? state : { ...state, current: used },
    };
  }
}
