import type { Ruleset } from '../rules/ruleset';
import { Samples } from '../text/samples';
import type { RateLimitRequest } from './request';

/** Calls are remembered by their domain and keys, up to so many characters. */
const LONGEST_REMEMBERED = 1024;

/** Receives a call to which no rule applies, and the rules in which it was looked up. */
export type OnUnmatched = (request: RateLimitRequest, ruleset: Ruleset) => void;

/**
 * Reports {@link Samples} of the calls to which no rule applies, by their domain and keys; all again with other rules.
 */
export class UnmatchedCalls {
  readonly #onUnmatched: OnUnmatched;
  readonly #samples = new Samples();
  #ruleset: Ruleset | undefined;

  constructor(onUnmatched: OnUnmatched) {
    this.#onUnmatched = onUnmatched;
  }

  found(request: RateLimitRequest, ruleset: Ruleset, nowSeconds: number): void {
    if (!this.#samples.isDue(nowSeconds)) return;
    if (ruleset !== this.#ruleset) this.#samples.forget();
    this.#ruleset = ruleset;
    if (this.#samples.isNew(shapeOf(request), nowSeconds)) this.#onUnmatched(request, ruleset);
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
