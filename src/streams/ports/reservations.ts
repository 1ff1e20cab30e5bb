import type { Observable } from 'rxjs';
import type { JudgedStep } from '../../counting/group';
import { deciderOf, foundIn } from '../../counting/reserved';
import { isWholeNumber } from '../../text/plain-number';
import type { Counted } from '../../counting/operation';
import type { RateLimitRequest } from '../../limiter/request';
import type { Verdict } from '../../limiter/verdict';
import type { Caller } from './decide';

/**
 * Reserves hits on the counters of a request, and settles or cancels them later, in any process that has the same
 * store.
 */
export interface Reservations {
  /** Rejects with a `DecisionError`, or with a {@link ReservationError}. */
  reserve(call: ReserveCall): Promise<Reserved>;
  /**
   * Counts what was really used. Rejects as {@link reserve}.
   *
   * @param hits one number for all descriptors, or one for each
   */
  settle(id: string, hits: number | readonly number[], caller?: Caller): Promise<EndedReservation>;
  /** Gives everything back. Rejects as {@link reserve}. */
  cancel(id: string, caller?: Caller): Promise<EndedReservation>;
  /** Rejects further calls with `shutting_down`. Resolves when those in flight are answered. */
  complete(): Promise<void>;
}

export interface ReserveCall {
  readonly request: RateLimitRequest;
  /** How long the reservation is open, in milliseconds. */
  readonly ttl: number;
  /** The caller's name for it; undefined: one is made. */
  readonly id: string | undefined;
  /** What happens when it is neither settled nor cancelled in time: its own hits stay counted, or are given back. */
  readonly onExpiry: OnExpiry;
  /** For logs. */
  readonly caller?: Caller | undefined;
}

export type OnExpiry = 'settle' | 'cancel';

/** What a request for a reservation is answered. */
export interface Reserved {
  /** Undefined: a limit denies it, and nothing is counted. */
  readonly id: string | undefined;
  readonly verdict: Verdict;
  /** Unix milliseconds. */
  readonly expiresAt: number;
}

/** What a reservation has become. */
export interface EndedReservation {
  readonly id: string;
  readonly state: 'settled' | 'cancelled';
  /** In the order of the request. */
  readonly descriptors: readonly EndedDescriptor[];
  /** Whether it was open until this call has ended it; absent if an earlier call has. */
  readonly wasOpen?: boolean;
}

export interface EndedDescriptor {
  readonly reserved: number;
  /** What it was settled with; 0 when it was cancelled. */
  readonly hits: number;
  /** By how much its counter was changed, negative when hits were given back; 0 without a counter. */
  readonly added: number;
}

export type ReservationErrorCode =
  /** There is no such reservation, or not any more. */
  | 'unknown_reservation'
  /** The reservation has another content, or has ended in another way. */
  | 'reservation_conflict'
  /** A counter has as many open reservations as it can have, or the store as many as it keeps. */
  | 'too_many_reservations'
  /** The store or the limit has no reservations. */
  | 'not_supported';

/** Why a call for a reservation is not answered. The message is for the caller. */
export class ReservationError extends Error {
  override readonly name = 'ReservationError';

  constructor(
    readonly code: ReservationErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/**
 * Keeps reservations: for each a record, a text that only the caller understands, and for each counter the list of its
 * open reservations. Both methods reject with a `DecisionError` when the store fails, and with a
 * {@link ReservationError} when it cannot do what is asked.
 */
export interface ReservationStore {
  /** The record with a key; undefined when there is none. */
  readRecord(key: string): Promise<string | undefined>;
  /**
   * Changes the record and the counters, or nothing of both. What a process leaves half done is finished or taken back
   * by the next call.
   */
  changeReservation(change: ReservationChange): Promise<ReservationResult>;
  /**
   * Gives back what reservations have left that have expired, of any process, while it is subscribed to. Emits the keys
   * of the counters; never fails. Undefined: the store does so by itself.
   */
  readonly freed$?: Observable<string> | undefined;
  /** @param now Unix milliseconds */
  readOpen(counter: Counted, now: number): Promise<OpenReservations>;
}

/** The open reservations of a counter. */
export interface OpenReservations {
  readonly count: number;
  /** The reservations that expire first, at most {@link MOST_SHOWN}. */
  readonly first: readonly OpenReservation[];
}

/** Whether it is one, whatever the types say. */
export function isOpenReservations(open: unknown): open is OpenReservations {
  const { count, first } = (open ?? {}) as { readonly count?: unknown; readonly first?: unknown };
  return isWholeNumber(count) && Array.isArray(first) && first.every(isOpenReservation);
}

function isOpenReservation(open: unknown): boolean {
  const { id, hits, expiresAt, onExpiry } = (open ?? {}) as Partial<OpenReservation>;
  return (
    typeof id === 'string' &&
    isWholeNumber(hits) &&
    typeof expiresAt === 'number' &&
    Math.abs(expiresAt) <= LAST_DATE &&
    (onExpiry === 'settle' || onExpiry === 'cancel')
  );
}

export interface OpenReservation {
  readonly id: string;
  /** The hits of one descriptor that were added to the counter. */
  readonly hits: number;
  /** Unix milliseconds. */
  readonly expiresAt: number;
  readonly onExpiry: OnExpiry;
}

/** The last time that a date of JavaScript has, in Unix milliseconds. */
export const LAST_DATE = 8_640_000_000_000_000;

/** How many open reservations of a counter are listed. */
export const MOST_SHOWN = 20;

/** Most descriptors of a reservation. */
export const MAX_RESERVED_DESCRIPTORS = 16;

/** For how long a reservation can be open, in milliseconds. */
export const MIN_TTL = 1_000;
export const MAX_TTL = 3_600_000;

/** How long the calls of a reservation that has expired or ended are answered as before, in milliseconds. */
export const KEPT = 120_000;

/** For how long anything is known of a reservation at most, in milliseconds. */
export const LONGEST_KNOWN = MAX_TTL + KEPT;

/** Most open reservations of a counter. */
export const MAX_OPEN = 10_000;

export interface ReservationChange {
  /** The key of the record. */
  readonly key: string;
  /** The record as it must be; undefined: there must be none. */
  readonly before: string | undefined;
  /**
   * The new record; undefined: there is none. A line with {@link lineOf} each step is added, except to one that opens
   * and has no members.
   */
  readonly after: string | undefined;
  /** How long the record is kept from now on, in milliseconds. */
  readonly lifetime: number;
  /** When the caller makes it, in Unix milliseconds. What has expired is decided by the clock of the store. */
  readonly now: number;
  /** Present when the reservation is opened: those that have expired are ended first, some of each counter. */
  readonly opens?: OpenedReservation | undefined;
  readonly steps: readonly ReservationStep[];
}

export interface OpenedReservation {
  /** After how many milliseconds it expires. */
  readonly ttl: number;
  /** The reservation is denied for another reason than its counters: they are only read. */
  readonly isDenied: boolean;
  readonly domain: string;
}

/** A step of a change, on one counter: positive hits are added, negative ones subtracted down to 0. Plain data. */
export interface ReservationStep extends JudgedStep {
  /**
   * The name of the reservation among the open ones of the counter, where it is entered or removed: `c:` if what it has
   * added is subtracted when it expires and `s:` if that stays counted, the index of its descriptor, and the id. Of one
   * that is cancelled when it expires, a place of `max_concurrent` has `f:`: it is free then without anything to
   * subtract. Undefined: it has none, as it holds nothing.
   */
  readonly member: string | undefined;
  /**
   * What the member to remove has added when it was entered. If it is gone, it has expired: then what one with `c:` has
   * added is subtracted already, and added to the hits.
   */
  readonly held?: number | undefined;
  /** Where an algorithm decides, the text of the `Hold` of that member. */
  readonly hold?: string | undefined;
}

export type ReservationResult =
  /** What the steps have done. When it is denied: counts over their limit as if they were counted, and the others. */
  | { readonly outcome: 'done' | 'denied'; readonly steps: readonly StepDone[] }
  /** A counter has {@link MAX_OPEN} open reservations, or the memory those of a domain or of all that it keeps. */
  | { readonly outcome: 'full'; readonly of: 'counter' | 'domain' | 'store' }
  /** A member to remove was not there, nor the record: both are forgotten. */
  | { readonly outcome: 'expired' }
  /** The record is not what it must be. */
  | { readonly outcome: 'changed'; readonly record: string | undefined };

/** Whether a store can have answered so to the change of a reservation, whatever the types say. */
export function isResultOf({ steps }: Pick<ReservationChange, 'steps'>, result: unknown): result is ReservationResult {
  const { outcome, ...rest } = (result ?? {}) as { readonly outcome?: unknown; readonly record?: unknown };
  if (outcome === 'full' || outcome === 'expired') return true;
  if (outcome === 'changed') return rest.record === undefined || typeof rest.record === 'string';
  const { steps: done } = rest as { readonly steps?: unknown };
  if ((outcome !== 'done' && outcome !== 'denied') || !Array.isArray(done) || done.length !== steps.length)
    return false;
  return steps.every((step, index) => {
    const { count, added, found } = (done[index] ?? {}) as Partial<Record<keyof StepDone, unknown>>;
    const change = outcome === 'denied' ? { hits: 0 } : step;
    return isWholeNumber(count) && isAddedBy(change, added) && isFoundBy(step, found);
  });
}

/** Whether hits can have changed a counter so: subtracting ends at 0, to which it also sets one that was negative. */
function isAddedBy({ hits, held = 0 }: Pick<ReservationStep, 'hits' | 'held'>, added: unknown): boolean {
  return (
    Number.isSafeInteger(added) &&
    (added as number) >= Math.min(0, hits) &&
    ((added as number) <= hits + held || hits < 0)
  );
}

function isFoundBy({ limit }: ReservationStep, text: unknown): boolean {
  const decider = deciderOf(limit);
  if (text === '') return true;
  return typeof text === 'string' && decider !== undefined && foundIn(text, decider) !== undefined;
}

/** What a step has done. */
export interface StepDone {
  /** The count after the step. */
  readonly count: number;
  /** By how much the counter was changed: it saturates. */
  readonly added: number;
  /** What it has found where an algorithm decides: see `foundText`; else, and when a reservation is ended, empty. */
  readonly found: string;
}

/** What {@link lineOf} has written; undefined for another text. */
export function readLine(line: string): StepDone | undefined {
  const [, count, added, found = ''] = /^(\d{1,16}):(-?\d{1,16})((?:\/\d{1,16}){3,6})?$/.exec(line) ?? [];
  return count === undefined ? undefined : { count: Number(count), added: Number(added), found };
}

/** What a record has of a step that was done. */
export function lineOf({ count, added, found }: StepDone): string {
  return `${count}:${added}${found}`;
}
