import type { Descriptor, RateLimitRequest } from '../limiter/request';
import { type Unit, unitByNumber } from '../rules/unit';
import type { EndedDescriptor, OnExpiry } from '../streams/ports/reservations';

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
  /** What each descriptor had when it ended. */
  readonly ended?: readonly EndedDescriptor[] | undefined;
}

/** A counter of a descriptor. */
export interface CountedDescriptor {
  /** Its index in the request. */
  readonly index: number;
  /** The index of the limit: not 0 only for a rule with `rate_limits`. */
  readonly limit: number;
  readonly key: string;
  readonly hits: number;
  /** As that of a counter operation. */
  readonly windowSeconds: number;
  readonly isInMainStore: boolean;
  /** When the window ends, in Unix seconds. */
  readonly end: number;
}

/** A record, and the counts after each of its counted descriptors when it was made. */
export interface StoredRecord {
  readonly record: ReservationRecord;
  readonly counts: readonly number[];
}

/** As the store keeps it when it is made; the store adds a line with the counts. */
export function writeRecord(record: ReservationRecord): string {
  return JSON.stringify(record, (name, value: unknown) =>
    // A unit is an object of its own, by which limits are compared.
    name === 'unit' ? ((value as Unit | undefined)?.number ?? 0) : value,
  );
}

export function writeStored({ record, counts }: StoredRecord): string {
  return `${writeRecord(record)}\n${counts.join()}`;
}

/** @returns undefined when the text is no record: another program has written it */
export function readStored(text: string): StoredRecord | undefined {
  const end = text.lastIndexOf('\n');
  try {
    const record = JSON.parse(text.slice(0, Math.max(0, end))) as ReservationRecord;
    const { request, counted } = record;
    const descriptors = request.descriptors.map((descriptor): Descriptor => {
      const { limit } = descriptor;
      return limit === undefined
        ? { ...descriptor, limit }
        : { ...descriptor, limit: { ...limit, unit: unitByNumber(Number(limit.unit)) } };
    });
    const counts = counted.length === 0 ? [] : text.slice(end + 1).split(',');
    return { record: { ...record, request: { ...request, descriptors } }, counts: counts.map(Number) };
  } catch {
    return undefined;
  }
}

/** Whether a call with an id that is known is the same call again. */
export function isSameCall(one: ReservationRecord, other: ReservationRecord): boolean {
  return contentOf(one) === contentOf(other);
}

function contentOf({ request, ttl, onExpiry }: ReservationRecord): string {
  return writeRecord({ request, ttl, onExpiry, at: 0, counted: [], state: 'open' });
}
