import type { BlockConfig } from '../../rules/unit';
import { isWholeNumber } from '../../text/plain-number';
import type { Algorithm, Block, BlockableState, CountedState, Outcome, Purpose } from './algorithm';

const MICROSECONDS = 1_000_000;
/** There is none, and none is remembered. */
export const NO_BLOCK: Block = Object.freeze({ end: 0, length: 0 });

/** For how many seconds a block matters. @param now Unix time in microseconds */
export function blockLifetime({ end }: Block, { forgottenAfter }: BlockConfig, now: number): number {
  return Math.ceil((end - now) / MICROSECONDS) + forgottenAfter;
}

/**
 * Another algorithm whose calls are denied for a time after one that it denies: a block, which begins with an empty
 * counter when it ends. Calls in a block change nothing, so that it always ends.
 */
export class Blocking implements Algorithm {
  readonly name: Algorithm['name'];
  readonly requestsPerUnit: number;
  readonly lengthSeconds: number;
  readonly burst: number | undefined;
  readonly capacity: number;
  /** The lifetime of the counter alone; the block has one of its own: {@link blockLifetime}. */
  readonly lifetime: number;

  constructor(
    /** What decides while there is no block. */
    readonly counter: Algorithm,
    readonly blockFor: BlockConfig,
  ) {
    this.name = counter.name;
    this.requestsPerUnit = counter.requestsPerUnit;
    this.lengthSeconds = counter.lengthSeconds;
    this.burst = counter.burst;
    this.capacity = counter.capacity;
    this.lifetime = counter.lifetime;
  }

  empty(now: number): BlockableState {
    return { counted: this.counter.empty(now) as CountedState, block: NO_BLOCK, now };
  }

  at({ counted, block }: BlockableState, now: number): BlockableState {
    return this.stateOf(counted, block, now);
  }

  /** What a store has, at a time. @param counted undefined: the counter is absent */
  stateOf(counted: CountedState | undefined, block: Block | undefined, now: number): BlockableState {
    const present = counted === undefined ? this.counter.empty(now) : this.counter.at(counted, now);
    return { counted: present as CountedState, block: this.#blockAt(block ?? NO_BLOCK, now), now };
  }

  /** A block lasts at most its length, because a clock that has gone back would otherwise make it longer. */
  #blockAt(block: Block, now: number): Block {
    const { end, length } = block;
    if (now >= end + this.blockFor.forgottenAfter * MICROSECONDS) return NO_BLOCK;
    return end > now + length ? { end: now + length, length } : block;
  }

  reservable(): number {
    return 0;
  }

  reserve(state: BlockableState): BlockableState {
    return state;
  }

  windowAt(): undefined {
    return undefined;
  }

  takesBack(): boolean {
    return true;
  }

  isPossible({ counted, block, now }: BlockableState): boolean {
    const { end, length } = block;
    return isWholeNumber(end) && isWholeNumber(length) && end <= now + length && this.counter.isPossible(counted);
  }

  /** @param purpose a call with one finds a block, but starts none: others do, when they are over the limit */
  decide(state: BlockableState, hits: number, purpose?: Purpose): Outcome {
    const { counted, block, now } = state;
    if (now < block.end) return this.#blocked(state, hits < 0);
    const outcome = this.counter.decide(counted, hits, purpose);
    if (!outcome.isAllowed && purpose === undefined)
      return { ...this.#blocked(this.#start(block, now), false), startsBlock: true };
    return {
      ...outcome,
      state: outcome.state === counted ? state : { ...state, counted: outcome.state as CountedState },
    };
  }

  #start(before: Block, now: number): BlockableState {
    const { first, factor, most } = this.blockFor;
    const length = before.length === 0 ? first * MICROSECONDS : Math.min(most * MICROSECONDS, before.length * factor);
    return { ...this.empty(now), block: { end: now + length, length } };
  }

  /** @param isAllowed hits that are given back are, and change nothing */
  #blocked(state: BlockableState, isAllowed: boolean): Outcome {
    const left = (state.block.end - state.now) / MICROSECONDS;
    return {
      isAllowed,
      used: 0,
      remaining: 0,
      secondsUntilReset: Math.ceil(left),
      retryAfterSeconds: Math.floor(left),
      blockedUntil: state.block.end,
      state,
    };
  }
}
