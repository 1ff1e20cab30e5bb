import {
  type Algorithm,
  type AlgorithmLimit,
  MOST_REPORTED,
  type Outcome,
  type Purpose,
  type Returnable,
  type WindowsState,
} from './algorithm';

/** What algorithms have in common whose state is hits; of most, one count, which does not change with time. */
export abstract class CountedHits {
  readonly burst = undefined;
  readonly requestsPerUnit: number;
  readonly lengthSeconds: number;
  readonly capacity: number;
  readonly lifetime: number;

  constructor({ requestsPerUnit, lengthSeconds }: AlgorithmLimit, lifetime = lengthSeconds) {
    this.requestsPerUnit = requestsPerUnit;
    this.lengthSeconds = lengthSeconds;
    this.capacity = requestsPerUnit;
    this.lifetime = lifetime;
  }

  empty(now: number): WindowsState {
    return { previous: 0, current: 0, now };
  }

  at({ current }: WindowsState, now: number): WindowsState {
    return { previous: 0, current, now };
  }

  windowAt(_state: WindowsState): Returnable | undefined {
    return undefined;
  }
}

/**
 * The hits of one window, whose start is part of the key, as an algorithm: for limits that are decided together with
 * others. Unlike where hits are counted first and compared then, a call counts with all of its hits or with none.
 */
export class FixedWindow extends CountedHits implements Algorithm {
  readonly name = 'fixed_window';

  reservable({ current }: WindowsState): number {
    return Math.max(0, this.requestsPerUnit - current);
  }

  reserve({ current, now }: WindowsState, hits: number): WindowsState {
    return { previous: 0, current: current + hits, now };
  }

  takesBack(): boolean {
    return true;
  }

  /** Another program may have written a negative count. */
  isPossible({ previous, current }: WindowsState): boolean {
    return previous === 0 && Number.isSafeInteger(current);
  }

  /** The reset and the time in which it is closed are those of the window, which the caller knows: 0 here. */
  decide(state: WindowsState, hits: number, purpose?: Purpose): Outcome {
    const { current } = state;
    const sum = Math.max(0, current + hits);
    const fits = purpose === undefined ? hits <= 0 || sum <= this.requestsPerUnit : current < this.requestsPerUnit;
    const used = purpose === 'report' ? Math.min(MOST_REPORTED, sum) : fits ? sum : current;
    return {
      isAllowed: fits,
      used,
      remaining: Math.max(0, this.requestsPerUnit - used),
      secondsUntilReset: 0,
      retryAfterSeconds: 0,
      state: used === current ? state : { previous: 0, current: used, now: state.now },
    };
  }
}
