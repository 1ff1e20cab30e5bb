import { LARGEST_COUNT } from '../../counting/operation';
import { type Descriptor, NO_HITS_ADDEND, type RateLimitRequest } from '../../limiter/request';
import { unitByName } from '../../rules/unit';
import { type EndedReservation, MAX_TTL, type ReserveCall } from '../../streams/ports/reservations';
import { excerpt } from '../../text/excerpt';
import { LONGEST_LINE } from './log-lines';

/** What became of a call, by the log or by rules. */
export interface JudgedCall {
  readonly isAllowed: boolean;
  readonly descriptors: readonly JudgedDescriptor[];
}

export interface JudgedDescriptor {
  readonly isAllowed: boolean;
  /** The path of the rule that matches, or {@link REQUEST_LIMIT}; undefined without one. */
  readonly rule: string | undefined;
}

/** Stands for the rule where the call has a limit of its own. */
export const REQUEST_LIMIT = 'limit of the request';

/** What all lines of the log have. */
interface RecordedLine {
  /** Unix time in milliseconds. */
  readonly time: number;
  /** The share of the decisions that is in the log. */
  readonly sample: number;
}

/** A decision of the log. */
export interface RecordedCall extends JudgedCall, RecordedLine {
  readonly request: RateLimitRequest;
  /** The entries of each descriptor as one text. */
  readonly callers: readonly string[];
  /** Undefined unless the call has asked for a reservation. */
  readonly reservation: RecordedReservation | undefined;
  /** Whether the call was within its limits, or had none: not over one that is in shadow mode either. */
  readonly isWithinLimits: boolean;
  /** The log has cut off a text. */
  readonly isCutOff: boolean;
}

/** What a reservation was asked for with. */
export interface RecordedReservation extends Pick<ReserveCall, 'ttl' | 'onExpiry'> {
  readonly id: string;
}

/** The end of a reservation. */
export interface RecordedEnd extends RecordedLine, Pick<EndedReservation, 'id' | 'state'> {
  /** What each descriptor was settled with. */
  readonly hits: readonly number[];
}

/**
 * Why a line is not played: it is another one, such as one of the log of the service; the call has failed, so that no
 * rule has decided it; the log has left out descriptors or entries.
 */
export type SkippedLine =
  { readonly skipped: 'other' | 'failed' | 'incomplete' } | { readonly skipped: 'malformed'; readonly reason: string };

type Fields = Readonly<Record<string, unknown>>;

/** Why a line is no decision of weir. */
class MalformedLine extends Error {}

function requireThat(isSo: boolean, reason: string): asserts isSo {
  if (!isSo) throw new MalformedLine(reason);
}

const PURPOSES = ['ask', 'report'] as const;

/** By which the clock that a log was written with may be fast. */
const MAX_AHEAD_MS = 86_400_000;
/** A call stands for at most so many that a counter can hold their hits. */
const SMALLEST_SAMPLE = 1e-9;
/** The longest name of a rule that is kept, in characters. */
const LONGEST_NAME = 256;

/**
 * Reads a line of a decision log (schema/decision-log.schema.json). Members that a replay does not need are not
 * checked.
 */
export function readLine(line: string | undefined): RecordedCall | RecordedEnd | SkippedLine {
  if (line?.trim() === '') return { skipped: 'other' };
  try {
    requireThat(line !== undefined, `it is longer than ${LONGEST_LINE} bytes`);
    return readRecord(parsed(line));
  } catch (error) {
    if (error instanceof MalformedLine) return { skipped: 'malformed', reason: error.message };
    throw error;
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new MalformedLine('it is not JSON');
  }
}

function readRecord(record: unknown): RecordedCall | RecordedEnd | SkippedLine {
  if (!isObject(record)) return { skipped: 'other' };
  const { type, time, sample = 1, descriptors } = record;
  if (type !== 'decision' && type !== 'reservation') return { skipped: 'other' };
  if (isObject(record['error'])) return { skipped: 'failed' };
  if ('moreDescriptors' in record) return { skipped: 'incomplete' };
  const at = typeof time === 'string' ? Date.parse(time) : Number.NaN;
  requireThat(at >= 0, 'its time is not valid');
  requireThat(at <= Date.now() + MAX_AHEAD_MS, 'its time is in the future');
  requireThat(typeof sample === 'number' && sample >= SMALLEST_SAMPLE && sample <= 1, 'its sample is not a share');
  requireThat(Array.isArray(descriptors), 'its descriptors are not a list');
  const read = { time: at, sample, descriptors: descriptors as readonly unknown[] };
  return type === 'decision' ? readDecision(record, read) : readEnd(record, read);
}

interface ReadLine extends RecordedLine {
  readonly descriptors: readonly unknown[];
}

function readDecision(
  { domain, purpose, code, reservation, ttl, onExpiry }: Fields,
  { time, sample, descriptors }: ReadLine,
): RecordedCall | SkippedLine {
  requireThat(typeof domain === 'string', 'its domain is not a text');
  requireThat(isCode(code), 'its code is neither OK nor OVER_LIMIT');
  const requested: Descriptor[] = [];
  const callers: string[] = [];
  const judged: JudgedDescriptor[] = [];
  let isWithinLimits = code === 'OK';
  let isCutOff = false;
  for (const each of descriptors) {
    requireThat(isObject(each) && isCode(each['code']), 'a descriptor has no code');
    if ('moreEntries' in each) return { skipped: 'incomplete' };
    requested.push(readDescriptor(each, typeof reservation === 'string'));
    const { rule, currentLimit } = each;
    const texts = each['entries'] as readonly string[];
    callers.push(texts.join(','));
    judged.push({
      isAllowed: each['code'] === 'OK',
      rule: typeof rule === 'string' ? excerpt(rule, LONGEST_NAME) : currentLimit && REQUEST_LIMIT,
    } as JudgedDescriptor);
    isWithinLimits &&= each['code'] === 'OK' && !String(each['reason']).startsWith('over_limit');
    isCutOff ||= texts.some((text) => text.endsWith('…'));
  }
  const request = { domain, descriptors: requested, hitsAddend: 0, purpose: PURPOSES.find((each) => each === purpose) };
  const reserved = typeof reservation === 'string' ? readTerms(reservation, ttl, onExpiry) : undefined;
  // Without a spread, with which a replay takes twice as long.
  return {
    time,
    sample,
    request,
    callers,
    reservation: reserved,
    isAllowed: code === 'OK',
    descriptors: judged,
    isWithinLimits,
    isCutOff,
  };
}

/** The terms of a reservation, its time in whole milliseconds as stores keep it; without a valid one, the longest. */
function readTerms(id: string, ttl: unknown, onExpiry: unknown): RecordedReservation {
  const seconds = typeof ttl === 'string' ? Number.parseFloat(ttl) : Number.NaN;
  return {
    id,
    ttl: seconds > 0 ? Math.round(seconds * 1000) : MAX_TTL,
    onExpiry: onExpiry === 'cancel' ? onExpiry : 'settle',
  };
}

function readEnd({ reservation, state }: Fields, { time, sample, descriptors }: ReadLine): RecordedEnd {
  requireThat(typeof reservation === 'string', 'its reservation is not a text');
  requireThat(state === 'settled' || state === 'cancelled', 'its state is neither settled nor cancelled');
  const hits = descriptors.map((each) => (isObject(each) ? each['hits'] : undefined));
  requireThat(
    hits.every((each) => isWholeUpTo(each, LARGEST_COUNT)),
    'its hits are not numbers',
  );
  return { time, sample, id: reservation, state, hits };
}

function readDescriptor(
  { entries, hits, purpose, isNegativeHits, ...decided }: Fields,
  isReserved: boolean,
): Descriptor {
  const { reason, rule, currentLimit } = decided;
  requireThat(Array.isArray(entries), 'a descriptor has no entries');
  const read = (entries as readonly unknown[]).map((text) => {
    // A key that has an equals sign itself cannot be told from its value.
    const equals = typeof text === 'string' ? text.indexOf('=') : -1;
    requireThat(equals >= 0, 'an entry is not key=value');
    return { key: (text as string).slice(0, equals), value: (text as string).slice(equals + 1) };
  });
  requireThat(hits === undefined || isWholeUpTo(hits, LARGEST_COUNT), 'its hits are not a number');
  const limit = rule === undefined && isObject(currentLimit) ? readLimit(currentLimit) : undefined;
  // Logs of older versions have the sign as the reason alone.
  const isNegative = isNegativeHits === true || reason === 'negative_hits';
  // One hit is one that a report or a reservation has, or that of a call without any, which may become an ask.
  const isNamed = hits !== 1 || purpose === 'report' || isReserved;
  const hitsAddend = isNamed ? (hits ?? NO_HITS_ADDEND) : NO_HITS_ADDEND;
  return { entries: read, limit, hitsAddend, isNegativeHits: isNegative };
}

/** A limit that was sent with the request. */
function readLimit({ requestsPerUnit, unit }: Fields): Descriptor['limit'] {
  const known = typeof unit === 'string' ? unitByName(unit) : undefined;
  requireThat(known !== undefined && isWholeUpTo(requestsPerUnit, 2 ** 32 - 1), 'a limit is not valid');
  return { requestsPerUnit, unit: known };
}

function isWholeUpTo(value: unknown, most: number): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= most;
}

function isCode(code: unknown): boolean {
  return code === 'OK' || code === 'OVER_LIMIT';
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
