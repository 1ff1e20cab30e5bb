import { wholeNumber } from '../text/plain-number';
import type { HeaderValue } from './verdict';

/** A limit as the headers of a response show it. */
export interface ShownLimit {
  /** What identifies it to clients; others may have the same. */
  readonly name: string;
  /** The requests that it allows in a window, or the rate of a token bucket. */
  readonly quota: number;
  /** The length of the current window in seconds. */
  readonly windowSeconds: number;
  /** Of a token bucket with another burst than {@link quota}. */
  readonly burst: number | undefined;
  readonly remaining: number;
  readonly secondsUntilReset: number;
}

/** Limits that are shown: headers with more would not pass every proxy. */
export const MOST_LIMITS = 10;

/**
 * `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11: lists of structured fields (RFC 9651)
 * with an item for each limit. Empty without limits.
 */
export function structuredHeaders(all: readonly ShownLimit[]): readonly HeaderValue[] {
  if (all.length === 0) return [];
  const limits = all.slice(0, MOST_LIMITS);
  const names = uniqueNames(limits);
  const policies = limits.map(({ quota, windowSeconds, burst }, index) => {
    // The name of a parameter of our own begins with that of its maker, as the draft requires.
    const capacity = burst === undefined ? '' : `;weir-burst=${wholeNumber(burst)}`;
    return `${names[index]};q=${wholeNumber(quota)};qu="requests";w=${wholeNumber(windowSeconds)}${capacity}`;
  });
  const states = limits.map(({ remaining, secondsUntilReset }, index) => {
    return `${names[index]};r=${wholeNumber(remaining)};t=${wholeNumber(secondsUntilReset)}`;
  });
  return [
    { key: 'RateLimit-Policy', value: policies.join(', ') },
    { key: 'RateLimit', value: states.join(', ') },
  ];
}

/** The names as strings of structured fields; of equal ones, the second one and so on have a number. */
function uniqueNames(limits: readonly ShownLimit[]): readonly string[] {
  const taken = new Set<string>();
  return limits.map(({ name }) => {
    const first = stringOf(name);
    let unique = first;
    for (let number = 2; taken.has(unique); number += 1) unique = `${first.slice(0, -1)}-${number}"`;
    taken.add(unique);
    return unique;
  });
}

/** Such strings have printable ASCII characters only: others are percent-encoded. */
function stringOf(text: string): string {
  const wellFormed = text.replaceAll(/\p{Surrogate}/gu, '\ufffd');
  const ascii = wellFormed.replaceAll(/[^ -~]+/g, (characters) => encodeURIComponent(characters));
  return `"${ascii.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
