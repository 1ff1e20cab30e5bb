import { createHash } from 'node:crypto';
import type { Descriptor, RateLimitRequest } from '../limiter/request';
import type { AlgorithmLimit } from '../counting/algorithms/algorithm';
import type { LimitWindow } from '../counting/windows';
import { ALGORITHMS } from '../rules/rule-config';
import { MAX_WINDOW_SECONDS, type Unit, unitByNumber } from '../rules/unit';
import {
  type EndedDescriptor,
  type EndedReservation,
  LAST_DATE,
  MAX_RESERVED_DESCRIPTORS,
  type OnExpiry,
  type StepDone,
  lineOf,
  readLine,
} from '../streams/ports/reservations';
import { isWholeNumber } from '../text/plain-number';

/** What the store keeps of a reservation: everything that is needed to end it, and to answer its calls again. */
export interface ReservationRecord {
  readonly request: RateLimitRequest;
  /** Milliseconds. */
  readonly ttl: number;
  readonly onExpiry: OnExpiry;
  /** When it was made, in Unix milliseconds. */
  readonly at: number;
  readonly counted: readonly CountedDescriptor[];
  readonly state: 'open' | 'settled' | 'cancelled';
  /** What each descriptor had when it ended, and of which one each step was that ended it. */
  readonly ended?: readonly Omit<EndedDescriptor, 'added'>[] | undefined;
  readonly steps?: readonly number[] | undefined;
}

/** A counter of a descriptor. */
export interface CountedDescriptor {
  /** The index of the descriptor in the request. */
  readonly index: number;
  /** The index of the limit: not 0 only for a rule with `rate_limits`. */
  readonly limit: number;
  readonly key: string;
  readonly hits: number;
  /** The length of the window in seconds; of one of the calendar its end, in Unix seconds: see {@link windowIn}. */
  readonly windowSeconds: number;
  readonly isInMainStore: boolean;
  /** When the window ends, in Unix seconds. */
  readonly end: number;
  /** What decides, if its windows are not part of the key. */
  readonly algorithm?: AlgorithmLimit | undefined;
}

/**
 * A record, with what the steps have done that have made it, one for each of its counted descriptors, and that have
 * ended it.
 */
export interface StoredRecord {
  readonly record: ReservationRecord;
  readonly made: readonly StepDone[];
  readonly done: readonly StepDone[];
}

/**
 * The window of a counter. No window of a fixed length is as long as the Unix time at which one of the calendar ends.
 */
export function windowIn({ windowSeconds }: Pick<CountedDescriptor, 'windowSeconds'>): LimitWindow {
  return { lengthSeconds: windowSeconds, endsAt: windowSeconds > MAX_WINDOW_SECONDS ? windowSeconds : undefined };
}

const COUNTED = ['limit', 'hits', 'windowSeconds', 'end'] as const;

/** As the store keeps it when it is made; the store adds a line with what its steps have done. */
export function writeRecord(record: ReservationRecord): string {
  return JSON.stringify(record, (name, value: unknown) =>
    // A unit is an object of its own, by which limits are compared.
    name === 'unit' ? ((value as Unit | undefined)?.number ?? 0) : value,
  );
}

/** As the store keeps it when it is ended; the store adds another line. */
export function writeEnded(record: ReservationRecord, made: readonly StepDone[]): string {
  return `${writeRecord(record)}\n${made.map(lineOf).join()}`;
}

/** @returns undefined when the text is no record: another program has written it */
export function readStored(text: string): StoredRecord | undefined {
  try {
    const [head = '', made, done] = text.split('\n');
    const record = JSON.parse(head) as ReservationRecord;
    const { request, counted, steps = [] } = record;
    const [madeSteps, doneSteps] = [stepsIn(made), stepsIn(done)];
    if (!isRecord(record) || madeSteps.length !== counted.length || doneSteps.length !== steps.length) return undefined;
    const descriptors = request.descriptors.map((descriptor): Descriptor => {
      const { limit } = descriptor;
      return limit === undefined
        ? { ...descriptor, limit }
        : { ...descriptor, limit: { ...limit, unit: unitByNumber(Number(limit.unit)) } };
    });
    return {
      record: { ...record, request: { ...request, descriptors } },
      ...{ made: madeSteps, done: doneSteps },
    };
  } catch {
    return undefined;
  }
}

/** @throws TypeError when something is missing */
function isRecord({ request, ttl, at, counted, state, ended = [], steps = [] }: ReservationRecord): boolean {
  const { descriptors } = request;
  return (
    isWholeNumber(ttl) &&
    isWholeNumber(at) &&
    at + ttl <= LAST_DATE &&
    ['open', 'settled', 'cancelled'].includes(state) &&
    descriptors.length <= MAX_RESERVED_DESCRIPTORS &&
    descriptors.every(({ entries }) => entries.every(({ key, value }) => isText(key) && isText(value))) &&
    counted.every(
      (each) =>
        each.index in descriptors &&
        isText(each.key) &&
        COUNTED.every((name) => isWholeNumber(each[name])) &&
        (each.algorithm === undefined || isAlgorithm(each.algorithm)),
    ) &&
    ended.every(({ reserved, hits }) => isWholeNumber(reserved) && isWholeNumber(hits)) &&
    steps.every((index) => index in ended)
  );
}

function isAlgorithm({ name, requestsPerUnit, lengthSeconds, burst = 0 }: AlgorithmLimit): boolean {
  return (
    name !== 'fixed_window' &&
    (name === 'max_concurrent' || ALGORITHMS.includes(name)) &&
    [requestsPerUnit, burst].every(isWholeNumber) &&
    isWholeNumber(lengthSeconds) &&
    lengthSeconds > 0
  );
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

/** @throws Error when it is none */
function stepsIn(line = ''): readonly StepDone[] {
  if (line === '') return [];
  return line.split(',').map((step) => {
    const done = readLine(step);
    if (done === undefined) throw new Error('it is no step');
    return done;
  });
}

/** The descriptors of a reservation that has ended. Of several counters, that of the last step. */
export function endedDescriptors({
  record: { ended = [], steps = [] },
  done,
}: StoredRecord): readonly EndedDescriptor[] {
  const added = new Map(steps.map((index, step) => [index, done[step]!.added]));
  return ended.map((descriptor, index) => ({ ...descriptor, added: added.get(index) ?? 0 }));
}

/** Whether a call with an id that is known is the same call again. */
export function isSameCall(one: CallContent, other: CallContent): boolean {
  return contentOf(one) === contentOf(other);
}

type CallContent = Pick<ReservationRecord, 'request' | 'ttl' | 'onExpiry'>;

function contentOf({ request, ttl, onExpiry }: CallContent): string {
  return writeRecord({ request, ttl, onExpiry, at: 0, counted: [], state: 'open' });
}

/**
 * A reservation that holds no hits, as its descriptors have no limits or 0 hits. It is all in its id or, with an id of
 * the caller, in a record of less than 100 bytes; once it has ended, there is such a record for each. Whatever such an
 * id says, it changes no counter.
 */
export interface EmptyReservation {
  /** How many there are. */
  readonly descriptors: number;
  /** The descriptors that have a limit: bit i is set for the descriptor with the index i. */
  readonly limited: number;
  /** Unix milliseconds. */
  readonly expiresAt: number;
}

/** An id has no line feed, so that none says that it has ended. */
const EMPTY = /^none\.(\d{1,2})\.([0-9a-z]{1,4})\.([0-9a-z]{1,9})\.([\w-]*)(?:\n(settled|cancelled) ([\d,]+))?$/;

/** What the ids of empty reservations begin with. */
export const EMPTY_PREFIX = 'none.';

/** @param end what tells it from others */
export function writeEmpty({ descriptors, limited, expiresAt }: EmptyReservation, end: string): string {
  return `${EMPTY_PREFIX}${descriptors}.${limited.toString(36)}.${expiresAt.toString(36)}.${end}`;
}

/** @param open what {@link writeEmpty} has written */
export function writeEndedEmpty(open: string, state: EndedReservation['state'], hits: readonly number[]): string {
  return `${open}\n${state} ${hits.join()}`;
}

/** What the text of an empty reservation says. */
export interface StoredEmpty extends EmptyReservation {
  readonly end: string;
  /** Undefined: it is open, or has expired. */
  readonly ended: Omit<EndedReservation, 'id'> | undefined;
}

/** @returns undefined when the text is another one */
export function readEmpty(text: string): StoredEmpty | undefined {
  const [, descriptors, limited, expiresAt, end, state, hits = ''] = EMPTY.exec(text) ?? [];
  if (end === undefined || Number(descriptors) > MAX_RESERVED_DESCRIPTORS) return undefined;
  return {
    descriptors: Number(descriptors),
    limited: Number.parseInt(limited!, 36),
    expiresAt: Number.parseInt(expiresAt!, 36),
    end,
    ended: state && { state, descriptors: withoutCounters(hits.split(',').map(Number)) },
  } as StoredEmpty;
}

/** What becomes of the descriptors of an empty reservation that is ended with these hits. */
export function withoutCounters(hits: readonly number[]): readonly EndedDescriptor[] {
  return hits.map((own) => ({ reserved: 0, hits: own, added: 0 }));
}

/** Stands for the content of a call in the record of an empty reservation. */
export function digestOf(call: CallContent): string {
  return createHash('sha256').update(contentOf(call)).digest('base64url').slice(0, 22);
}
