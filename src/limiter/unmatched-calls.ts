import type { Ruleset } from '../rules/ruleset';
import { ownText, tableKey } from '../text/table-key';
import type { RateLimitRequest } from './request';

/** Calls are remembered by their domain and keys; so many of them, and so many characters of each. */
const MOST_REMEMBERED = 100;
const LONGEST_REMEMBERED = 1024;
const MOST_REPORTED_PER_MINUTE = 5;
const MINUTE = 60;
const HOUR = 3600;

/** Receives a call to which no rule applies, and the rules in which it was looked up. */
export type OnUnmatched = (request: RateLimitRequest, ruleset: Ruleset) => void;

/**
 * Reports samples of the calls to which no rule applies, those with the same domain and keys once per hour and ruleset, at most five
 * per minute. One call per second is examined, so that many of them cost nothing; memory is bounded, whatever callers send.
 */
export class UnmatchedCalls {
  readonly #onUnmatched: OnUnmatched;
  readonly #reported = new Set<string>();
  #ruleset: Ruleset | undefined;
  #examinedAt = Number.NaN;
  #minute = Number.NaN;
  #leftInMinute = 0;
  #hour = Number.NaN;

  constructor(onUnmatched: OnUnmatched) {
    this.#onUnmatched = onUnmatched;
  }

  found(request: RateLimitRequest, ruleset: Ruleset, nowSeconds: number): void {
    if (nowSeconds === this.#examinedAt) return;
    this.#examinedAt = nowSeconds;
    this.#follow(ruleset, nowSeconds);
    if (this.#leftInMinute === 0 || this.#reported.size >= MOST_REMEMBERED) return;
    const shape = ownText(tableKey(shapeOf(request)));
    if (this.#reported.has(shape)) return;
    this.#reported.add(shape);
    this.#leftInMinute -= 1;
    this.#onUnmatched(request, ruleset);
  }

  #follow(ruleset: Ruleset, nowSeconds: number): void {
    const minute = Math.floor(nowSeconds / MINUTE);
    const hour = Math.floor(nowSeconds / HOUR);
    if (minute !== this.#minute) this.#leftInMinute = MOST_REPORTED_PER_MINUTE;
    if (hour !== this.#hour || ruleset !== this.#ruleset) this.#reported.clear();
    this.#minute = minute;
    this.#hour = hour;
    this.#ruleset = ruleset;
  }
}

/** The domain and the keys of a request, up to a length. */
function shapeOf({ domain, descriptors }: RateLimitRequest): string {
  let shape = domain.slice(0, LONGEST_REMEMBERED);
  for (const { entries } of descriptors) {
    shape += '\n';
    for (const { key } of entries) shape += `${key.slice(0, LONGEST_REMEMBERED)},`;
    if (shape.length >= LONGEST_REMEMBERED) break;
  }
  return shape;
}
