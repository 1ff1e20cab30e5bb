import type { Limit } from '../../src/counting/limit';

/** What has become of a counter, and when by the clock of the store. */
export type CounterEvent = { readonly key: string; readonly at: number } & (
  | { readonly kind: 'passed'; readonly hits: number }
  /** By a call; or by a reservation, whose hits have passed at first. */
  | { readonly kind: 'given back' | 'not used'; readonly hits: number }
  /** By an operator; 0: cleared. At most `held` hits that were counted before may still pass, or come back. */
  | { readonly kind: 'set'; readonly count: number; readonly held: number }
);

/** A counter that knows only what has passed. */
interface Model {
  /** Returns by how many hits this is beyond the bounds of leases; nothing in a right implementation. */
  apply(event: CounterEvent): number;
}

/** What of the events, in any order, is beyond the bounds of leases: see docs. */
export function excessOf(events: readonly CounterEvent[], limit: Limit): readonly string[] {
  const models = new Map<string, Model>();
  const excess: string[] = [];
  for (const event of events.toSorted((one, other) => one.at - other.at || rankOf(one) - rankOf(other))) {
    let model = models.get(event.key);
    if (model === undefined) models.set(event.key, (model = modelOf(limit)));
    const beyond = model.apply(event);
    if (beyond > 0) excess.push(`${beyond.toFixed(3)} in ${event.key} at ${event.at}`);
  }
  return excess;
}

/** Of one batch, which has one time, what is given back comes first: the order in it is not known here. */
function rankOf({ kind }: CounterEvent): number {
  return kind === 'given back' ? 0 : 1;
}

function modelOf(limit: Limit): Model {
  if (limit.algorithm === undefined) return new FixedModel(limit);
  return limit.algorithm.name === 'token_bucket' ? new BucketModel(limit) : new SlidingModel(limit);
}

/** One window. */
class FixedModel implements Model {
  readonly #most: number;
  #passed = 0;
  #allowed: number;

  constructor({ requestsPerUnit }: Limit) {
    this.#most = requestsPerUnit;
    this.#allowed = requestsPerUnit;
  }

  apply(event: CounterEvent): number {
    if (event.kind === 'set') this.#allowed = this.#passed + Math.max(0, this.#most - event.count) + event.held;
    else if (event.kind === 'given back') this.#allowed += event.hits;
    else this.#passed += event.kind === 'passed' ? event.hits : -event.hits;
    return event.kind === 'passed' ? Math.max(0, this.#passed - this.#allowed) : 0;
  }
}

/** An algorithm, whose counter recovers: hits that may pass in addition are used up when the others do not fit. */
abstract class RecoveringModel implements Model {
  /** Hits that may pass in addition. */
  #more = 0;

  apply(event: CounterEvent): number {
    if (event.kind === 'set') {
      this.set(event.at, event.count);
      this.#more += event.held;
    } else if (event.kind === 'passed') {
      const beyond = this.beyond(event.at, event.hits);
      const covered = Math.min(beyond, this.#more);
      this.#more -= covered;
      this.takeBack(covered);
      // A thousandth of a hit for the rounding of sums.
      return beyond - covered > 0.001 ? beyond - covered : 0;
    } else this.#more += event.hits;
    return 0;
  }

  /** Adds hits. Returns how many do not fit. */
  protected abstract beyond(at: number, hits: number): number;
  /** Hits of the last addition do not count. */
  protected abstract takeBack(hits: number): void;
  protected abstract set(at: number, count: number): void;
}

/** An exact bucket: in an interval of any length, at most its burst and what flows in. */
class BucketModel extends RecoveringModel {
  readonly #perHit: number;
  readonly #capacity: number;
  /** Times are counted from the first one: sums of Unix milliseconds are rounded to a quarter of a microsecond. */
  #start: number | undefined;
  #fullAt = 0;

  constructor({ capacity, requestsPerUnit, lengthSeconds }: Limit) {
    super();
    this.#perHit = (lengthSeconds * 1000) / requestsPerUnit;
    this.#capacity = capacity;
  }

  beyond(at: number, hits: number): number {
    const now = at - (this.#start ??= at);
    this.#fullAt = Math.max(this.#fullAt, now) + hits * this.#perHit;
    return Math.max(0, (this.#fullAt - now) / this.#perHit - this.#capacity);
  }

  takeBack(hits: number): void {
    this.#fullAt -= hits * this.#perHit;
  }

  set(at: number, count: number): void {
    this.#fullAt = at - (this.#start ??= at) + count * this.#perHit;
  }
}

/** Exact sliding windows. */
class SlidingModel extends RecoveringModel {
  readonly #length: number;
  readonly #most: number;
  #number = 0;
  #previous = 0;
  #current = 0;

  constructor({ requestsPerUnit, lengthSeconds }: Limit) {
    super();
    this.#length = lengthSeconds * 1000;
    this.#most = requestsPerUnit;
  }

  beyond(at: number, hits: number): number {
    this.#move(at);
    this.#current += hits;
    const left = this.#length - (Math.floor(at) % this.#length);
    return Math.max(0, Math.ceil((this.#previous * left) / this.#length) + this.#current - this.#most);
  }

  takeBack(hits: number): void {
    this.#current -= hits;
  }

  set(at: number, count: number): void {
    this.#move(at);
    [this.#previous, this.#current] = [0, count];
  }

  #move(at: number): void {
    const number = Math.floor(at / this.#length);
    if (number === this.#number) return;
    [this.#previous, this.#current] = [number === this.#number + 1 ? this.#current : 0, 0];
    this.#number = number;
  }
}
