import type { Entry } from '../rules/ruleset';
import { DecisionError } from './decision-error';
import { type Descriptor, NO_HITS_ADDEND } from './request';

// More than any legitimate request has; without a maximum, one request could delay the others.

export const MAX_DESCRIPTORS = 1_000;
/** Rules are nested less deep than this: a YAML file has at most 200 levels, and a rule takes two. */
export const MAX_ENTRIES_PER_DESCRIPTOR = 100;
/** Entries of all descriptors of a request. */
export const MAX_ENTRIES = 10_000;
/**
 * UTF-16 code units of the domain and of all keys and values. They are searched for wildcards, and copied into keys of counters and of
 * statistics.
 */
export const MAX_TEXT = 256 * 1024;
/**
 * Steps of matching whose number depends on the rules and not only on the length of the texts: the wildcards that are tried, and the
 * names in the `replaces` of the matched rules.
 */
export const MAX_MATCHING_STEPS = 256 * 1024;
/** Of what exceeds a maximum, servers count this many, so that the error states the number, and then stop reading. */
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
 * Counts an entry that a server does not keep, because it is not among the first {@link MAX_ENTRIES_PER_DESCRIPTOR} of its
 * descriptor.
 *
 * @param number the number of the descriptor, from 1
 * @throws DecisionError `too_much_work` when there are so many that counting must stop
 */
export function countEntry(entries: Entry[], number: number): void {
  if (entries.length >= MAX_COUNTED) throw tooManyEntries(number, `more than ${MAX_COUNTED}`);
  entries.push(UNREAD_ENTRY);
}

/** Rejects a request with more descriptors than the maximum. */
export function checkDescriptorCount(descriptors: readonly Descriptor[]): void {
  if (descriptors.length > MAX_DESCRIPTORS) throw tooManyDescriptors(String(descriptors.length));
}

/** Rejects a request with more entries than a maximum. */
export function checkEntryCounts(descriptors: readonly Descriptor[]): void {
  let sum = 0;
  for (let index = 0; index < descriptors.length; index += 1) {
    const { length } = (descriptors[index] as Descriptor).entries;
    if (length > MAX_ENTRIES_PER_DESCRIPTOR) throw tooManyEntries(index + 1, String(length));
    sum += length;
  }
  if (sum > MAX_ENTRIES) {
    throw new DecisionError(
      'too_much_work',
      `the descriptors of a request may have at most ${MAX_ENTRIES} entries, these have ${sum}`,
    );
  }
}

/** @param length the UTF-16 code units of all texts of a request */
export function checkTextLength(length: number): void {
  if (length <= MAX_TEXT) return;
  const message = `the domain, keys and values of a request may have at most ${MAX_TEXT} characters, these have ${length}`;
  throw new DecisionError('too_much_work', message);
}

function tooManyDescriptors(count: string): DecisionError {
  const message = `a request may have at most ${MAX_DESCRIPTORS} descriptors, this one has ${count}`;
  return new DecisionError('invalid_request', message);
}

function tooManyEntries(number: number, count: string): DecisionError {
  const message = `a descriptor may have at most ${MAX_ENTRIES_PER_DESCRIPTOR} entries, descriptor ${number} has ${count}`;
  return new DecisionError('too_much_work', message);
}
