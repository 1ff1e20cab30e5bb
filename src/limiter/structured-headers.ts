import type { Limit } from '../counting/limit';
import { wholeNumber } from '../text/plain-number';
import type { DescriptorStatus, HeaderValue } from './verdict';

/** Limits that are shown: headers with more would not pass every proxy. */
export const MOST_LIMITS = 10;

/**
 * `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11: lists of structured fields (RFC 9651)
 * with an item for each limit. Empty without limits.
 *
 * @param all statuses with a limit, of which the first ones are shown
 */
export function structuredHeaders(all: readonly DescriptorStatus[], nowSeconds: number): readonly HeaderValue[] {
  if (all.length === 0) return [];
  const statuses = all.slice(0, MOST_LIMITS);
  const limits = statuses.map(({ currentLimit }) => currentLimit!);
  const names = uniqueNames(limits);
  const policies = limits.map((limit, index) => {
    const { requestsPerUnit, burst } = limit;
    const policy = `${names[index]};q=${fieldNumber(requestsPerUnit)}`;
    if (!limit.hasWindows) return `${policy};qu="concurrent-requests"`;
    const length = limit.endOfWindow(nowSeconds) - limit.startOfWindow(nowSeconds);
    // The name of a parameter of our own begins with that of its maker, as the draft requires.
    const capacity = burst === undefined ? '' : `;weir-burst=${wholeNumber(burst)}`;
    return `${policy};qu="requests";w=${wholeNumber(length)}${capacity}`;
  });
  const states = statuses.map(({ limitRemaining, secondsUntilReset = 0 }, index) => {
    const reset = limits[index]!.hasWindows ? `;t=${wholeNumber(secondsUntilReset)}` : '';
    return `${names[index]};r=${fieldNumber(limitRemaining)}${reset}`;
  });
  return [
    { key: 'RateLimit-Policy', value: policies.join(', ') },
    { key: 'RateLimit', value: states.join(', ') },
  ];
}

/** Integers of structured fields have at most 15 digits: one fewer than the largest limit. */
function fieldNumber(value: number): number {
  return Math.min(wholeNumber(value), 1e15 - 1);
}

/** The names as strings of structured fields; of equal ones, the second one and so on have a number. */
function uniqueNames(limits: readonly Limit[]): readonly string[] {
  const taken = new Set<string>();
  return limits.map((limit) => {
    const first = stringOf(nameOf(limit));
    let unique = first;
    for (let number = 2; taken.has(unique); number += 1) unique = `${first.slice(0, -1)}-${number}"`;
    taken.add(unique);
    return unique;
  });
}

/** Without a name, what the limit is: `5-per-minute`, `2-per-5-minute`, `3-at-a-time`. */
function nameOf({ name, requestsPerUnit, unit, unitMultiplier, hasWindows }: Limit): string {
  if (name !== '') return name;
  if (!hasWindows) return `${requestsPerUnit}-at-a-time`;
  const units = unitMultiplier === 1 ? '' : `${unitMultiplier}-`;
  return `${requestsPerUnit}-per-${units}${unit.name.toLowerCase()}`;
}

/** A string of structured fields, which has printable ASCII characters only: others are percent-encoded. */
function stringOf(text: string): string {
  const wellFormed = text.replaceAll(/\p{Surrogate}/gu, '\ufffd');
  const ascii = wellFormed.replaceAll(/[^ -~]+/g, (characters) => encodeURIComponent(characters));
  return `"${ascii.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
