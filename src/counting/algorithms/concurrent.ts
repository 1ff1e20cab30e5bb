import { isWholeNumber } from '../../text/plain-number';
import type { Algorithm, Outcome, Purpose, WindowsState } from './algorithm';
import { CountedHits } from './fixed';

/**
 * How many reservations are open at a time, each of which counts 1. The store counts them, so that one is free in the
 * moment in which it expires; calls only ask whether another one could be opened.
 */
export class Concurrent extends CountedHits implements Algorithm {
  readonly name = 'max_concurrent';

  reservable(): number {
    return 0;
  }

  reserve(state: WindowsState): WindowsState {
    return state;
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
