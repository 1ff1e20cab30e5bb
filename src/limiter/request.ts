import type { Entry, Level } from '../rules/rule-tree';
import type { Ruleset } from '../rules/ruleset';
import type { Unit } from '../rules/unit';
import type { Purpose } from '../counting/algorithms/algorithm';
import { LARGEST_COUNT } from '../counting/operation';
import { DecisionError } from '../counting/decision-error';

export type { Entry } from '../rules/rule-tree';

/** The `hitsAddend` of a descriptor without one: the request's applies. */
export const NO_HITS_ADDEND = -1;

/**
 * A decoded request, the same for all servers; field names and meaning are those of
 * `envoy.service.ratelimit.v3.RateLimitRequest`.
 */
export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly Descriptor[];
  /** The hits of every descriptor without its own; 0 means 1. */
  readonly hitsAddend: number;
  /** What it is for, on all limits. Undefined: a postpaid limit is asked, or receives a report; others count. */
  readonly purpose?: Purpose | undefined;
}

export interface Descriptor {
  readonly entries: readonly Entry[];
  /** A limit in the request; it overrides the rules. */
  readonly limit: LimitOverride | undefined;
  /**
   * The descriptor's own hits, 0 to check without counting, or {@link NO_HITS_ADDEND}. A 64-bit number in the protocol:
   * a server passes on a value above 2^53 - 1 rounded, and {@link checkRequest} rejects it.
   */
  readonly hitsAddend: number;
  /** The hits are subtracted, and the descriptor is never over its limit. */
  readonly isNegativeHits: boolean;
}

export interface LimitOverride {
  readonly requestsPerUnit: number;
  /** Undefined if the request has UNKNOWN or an unknown number; rejected in a domain that has rules. */
  readonly unit: Unit | undefined;
}

/**
 * What a descriptor is for on a limit; undefined: it counts if it fits, or is given back. A postpaid limit is asked by
 * a request that names no hits.
 */
export function purposeOf(
  isPostpaid: boolean,
  { hitsAddend, isNegativeHits }: Descriptor,
  request: RateLimitRequest,
): Purpose | undefined {
  if (request.purpose === 'ask') return 'ask';
  if (isNegativeHits || (request.purpose === undefined && !isPostpaid)) return undefined;
  const isNamed = hitsAddend > 0 || (hitsAddend !== 0 && request.hitsAddend > 0);
  return isNamed ? 'report' : (request.purpose ?? 'ask');
}

/**
 * The descriptor's own hits if it has any, otherwise the request's, where 0 means 1, as it does in the descriptor of a
 * report. An ask has none.
 */
export function hitsOf({ hitsAddend }: Descriptor, request: RateLimitRequest): number {
  if (request.purpose === 'ask') return 0;
  if (hitsAddend >= 0) return hitsAddend === 0 && request.purpose === 'report' ? 1 : hitsAddend;
  return request.hitsAddend === 0 ? 1 : request.hitsAddend;
}

// More than any legitimate request has; without a maximum, one request could delay the others.

export const MAX_DESCRIPTORS = 1_000;
/** Rules are nested less deep than this: a YAML file has at most 200 levels, and a rule takes two. */
export const MAX_ENTRIES_PER_DESCRIPTOR = 100;
/** Entries of all descriptors of a request. */
const MAX_ENTRIES = 10_000;
/**
 * UTF-16 code units of the domain and of all keys and values. They are searched for wildcards, and copied into keys of
 * counters and of statistics.
 */
export const MAX_TEXT = 256 * 1024;
/**
 * Steps of matching whose number depends on the rules and not only on the length of the texts: the wildcards that are
 * tried, and the names in the `replaces` of the matched rules.
 */
export const MAX_MATCHING_STEPS = 256 * 1024;
/** How many of what exceeds a maximum servers count, so that the error states the number; then they stop reading. */
const MAX_COUNTED = 10_000;

const UNREAD_DESCRIPTOR: Descriptor = {
  entries: [],
  limit: undefined,
  hitsAddend: NO_HITS_ADDEND,
  isNegativeHits: false,
};
const UNREAD_ENTRY: Entry = { key: '', value: '' };

/**
 * Counts a descriptor that a server does not keep, because it is not among the first {@link MAX_DESCRIPTORS}.
 *
 * @throws DecisionError `invalid_request` when there are so many that counting must stop
 */
export function countDescriptor(descriptors: Descriptor[]): void {
  if (descriptors.length >= MAX_COUNTED) throw tooManyDescriptors(`more than ${MAX_COUNTED}`);
  descriptors.push(UNREAD_DESCRIPTOR);
}

/**
 * Counts an entry that a server does not keep, because it is not among the first {@link MAX_ENTRIES_PER_DESCRIPTOR} of
 * its descriptor.
 *
 * @param number the number of the descriptor, from 1
 * @throws DecisionError `too_much_work` when there are so many that counting must stop
 */
export function countEntry(entries: Entry[], number: number): void {
  if (entries.length >= MAX_COUNTED) throw tooManyEntries(number, `more than ${MAX_COUNTED}`);
  entries.push(UNREAD_ENTRY);
}

/**
 * Rejects invalid requests before anything is counted. The first three messages, and their order, are those of the Go
 * service, because alerts match on them.
 *
 * @returns the rules of the request's domain; undefined when there are none
 * @throws DecisionError `invalid_request`, `no_configuration` or `too_much_work`
 */
export function checkRequest(
  { domain, descriptors }: RateLimitRequest,
  ruleset: Ruleset | undefined,
): Level | undefined {
  if (domain === '') throw invalid('rate limit domain must not be empty');
  if (descriptors.length === 0) throw invalid('rate limit descriptor list must not be empty');
  if (ruleset === undefined) throw new DecisionError('no_configuration', 'no rate limit configuration loaded');
  if (descriptors.length > MAX_DESCRIPTORS) throw tooManyDescriptors(String(descriptors.length));
  checkEntryCounts(descriptors);
  const level = ruleset.domains.get(domain);
  let text = domain.length;
  for (let index = 0; index < descriptors.length; index += 1) {
    text += checkDescriptor(descriptors[index] as Descriptor, index, level !== undefined);
  }
  if (text > MAX_TEXT) {
    throw tooMuch(
      `the domain, keys and values of a request may have at most ${MAX_TEXT} characters, these have ${text}`,
    );
  }
  return level;
}

function checkEntryCounts(descriptors: readonly Descriptor[]): void {
  let sum = 0;
  for (let index = 0; index < descriptors.length; index += 1) {
    const { length } = (descriptors[index] as Descriptor).entries;
    if (length > MAX_ENTRIES_PER_DESCRIPTOR) throw tooManyEntries(index + 1, String(length));
    sum += length;
  }
  if (sum <= MAX_ENTRIES) return;
  throw tooMuch(`the descriptors of a request may have at most ${MAX_ENTRIES} entries, these have ${sum}`);
}

/** @returns the length of the descriptor's texts */
function checkDescriptor({ entries, hitsAddend, limit }: Descriptor, index: number, isKnownDomain: boolean): number {
  let text = 0;
  for (const { key, value } of entries) {
    if (key === '') throw invalid(`descriptor ${index + 1} has an entry without a key`);
    text += key.length + value.length;
  }
  if (hitsAddend > LARGEST_COUNT) {
    throw invalid(`hits_addend of descriptor ${index + 1} exceeds the largest count, 2^53 - 1`);
  }
  // In a domain without rules, overrides are ignored, valid or not.
  if (isKnownDomain && limit !== undefined && limit.unit === undefined) {
    throw invalid(`the limit of descriptor ${index + 1} has no valid unit`);
  }
  return text;
}

function tooManyDescriptors(count: string): DecisionError {
  return invalid(`a request may have at most ${MAX_DESCRIPTORS} descriptors, this one has ${count}`);
}

function tooManyEntries(number: number, count: string): DecisionError {
  return tooMuch(
    `a descriptor may have at most ${MAX_ENTRIES_PER_DESCRIPTOR} entries, descriptor ${number} has ${count}`,
  );
}

function invalid(message: string): DecisionError {
  return new DecisionError('invalid_request', message);
}

function tooMuch(message: string): DecisionError {
  return new DecisionError('too_much_work', message);
}
