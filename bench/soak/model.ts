import { DOMAIN } from '../suite/scenarios/loads';
import { RateLimitResponse, RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';

/** The limit of the second descriptor of each call. */
export const PASSING = 5;
export const COUNTED = 'user';
export const BLOCKED = 'blocked';
/** The limits of the two versions of the rules, which no value reaches. */
export const LIMITS = [4_000_000_000, 3_999_999_999] as const;

/** The rules after this many reloads. Counters per year, so that no window ends. */
export function rulesOf(version: number): string {
  return `domain: ${DOMAIN}
descriptors:
  - key: ${COUNTED}
    rate_limit: { unit: year, requests_per_unit: ${LIMITS[version % 2]} }
  - key: ${BLOCKED}
    rate_limit: { unit: year, requests_per_unit: ${PASSING} }
`;
}

/** Calls in flight at most, as a power of two. */
const IN_FLIGHT = 2 ** 20;

/**
 * What the answers to all calls of the soak prove. Each call counts a value under two rules: one whose limit is never
 * reached, and one that lets {@link PASSING} calls per value pass.
 */
export class Model {
  readonly #perGeneration: number;
  readonly #answered: Uint32Array;
  readonly #failed: Uint32Array;
  readonly #passed: Uint32Array;
  /** The sum and the maximum of the counts in the answers. */
  readonly #sum: Float64Array;
  readonly #highest: Uint32Array;
  readonly #valueOfCall = new Int32Array(IN_FLIGHT);
  #generation = 0;
  /** The limits that answers named: both versions of the rules must be among them. */
  readonly limits = new Set<number>();
  malformed = 0;

  /** @param perGeneration values that the calls of one generation use */
  constructor(generations: number, perGeneration: number) {
    this.#perGeneration = perGeneration;
    const values = generations * perGeneration;
    this.#answered = new Uint32Array(values);
    this.#failed = new Uint32Array(values);
    this.#passed = new Uint32Array(values);
    this.#sum = new Float64Array(values);
    this.#highest = new Uint32Array(values);
  }

  /** The next calls use new values. */
  turnOver(): void {
    if ((this.#generation + 1) * this.#perGeneration < this.#answered.length) this.#generation += 1;
  }

  /** The values below this one are not called any more. */
  get firstOfGeneration(): number {
    return this.#generation * this.#perGeneration;
  }

  /** All values that have been called are below this one. */
  get end(): number {
    return this.firstOfGeneration + this.#perGeneration;
  }

  get generations(): number {
    return this.#generation + 1;
  }

  /** The value that a call counts, when it is sent. */
  send(call: number): number {
    const value = this.firstOfGeneration + (call % this.#perGeneration);
    this.#valueOfCall[call & (IN_FLIGHT - 1)] = value;
    return value;
  }

  respond(call: number, message: Buffer): void {
    const { statuses } = RateLimitResponse.decode(message);
    const [counted, passing] = statuses;
    const limit = counted?.currentLimit?.requestsPerUnit;
    if (limit === undefined || counted?.code !== Code.OK || passing === undefined) {
      this.malformed += 1;
      return;
    }
    const value = this.#valueOfCall[call & (IN_FLIGHT - 1)]!;
    const count = limit - counted.limitRemaining;
    this.limits.add(limit);
    this.#answered[value]! += 1;
    this.#sum[value]! += count;
    if (count > this.#highest[value]!) this.#highest[value] = count;
    if (passing.code === Code.OK) this.#passed[value]! += 1;
  }

  fail(call: number): void {
    this.#failed[this.#valueOfCall[call & (IN_FLIGHT - 1)]!]! += 1;
  }

  /** The values whose answers or stored count are impossible, with the reason. */
  contradictions(stored: ReadonlyMap<number, number>): readonly string[] {
    const found: string[] = [];
    for (let value = 0; value < this.#answered.length; value += 1) {
      const reason = this.#contradiction(value, stored.get(value) ?? 0);
      if (reason !== undefined) found.push(`value ${value}: ${reason}`);
    }
    return found;
  }

  /** The number of different values in the answers. */
  get values(): number {
    return this.#answered.reduce((sum, each) => sum + (each > 0 ? 1 : 0), 0);
  }

  /** A failed call was counted or not; all others exactly once. */
  #contradiction(value: number, stored: number): string | undefined {
    const [answered, failed, passed] = [this.#answered[value]!, this.#failed[value]!, this.#passed[value]!];
    const [sum, highest] = [this.#sum[value]!, this.#highest[value]!];
    if (stored < answered || stored > answered + failed) {
      return `${answered} calls were answered and ${failed} failed, and ${stored} are stored`;
    }
    if (highest > stored) return `an answer had the count ${highest}, and ${stored} are stored`;
    // No two answers have the same count: without failures they have all counts from 1.
    const least = (answered * (answered + 1)) / 2;
    if (sum < least || (failed === 0 && sum !== least)) return `the counts of ${answered} answers add up to ${sum}`;
    if (passed > PASSING || passed < Math.min(PASSING, answered) - failed) {
      return `${passed} of ${answered} calls passed a limit of ${PASSING}, and ${failed} failed`;
    }
    return undefined;
  }
}
