import type { ExpiringCounts } from '../../../limiter/expiring-counts';
import {
  MAX_OPEN,
  MOST_SHOWN,
  type OpenReservations,
  type ReservationChange,
  type ReservationResult,
  type ReservationStep,
  givenBackBy,
  openReservation,
} from '../../../streams/ports/reservations';
import { judged } from '../counting';
import { ownText, tableKey, textBytes } from '../../../text/table-key';

/** Most records. Each has at most 16 KiB. */
const MAX_RECORDS = 100_000;
/** Most bytes of records, estimated. */
const MAX_BYTES = 64 * 1024 * 1024;
/** The memory of a record in addition to twice its texts, which are also in lists. */
const OVERHEAD_BYTES = 512;

interface Entry {
  text: string;
  readonly bytes: number;
  /** Of the counters that it has been opened on. */
  readonly keys: readonly string[];
}

/** The open reservations of a counter. */
interface OpenOnes {
  /** When each expires, in Unix milliseconds. */
  readonly members: Map<string, number>;
  /** None expires before. */
  next: number;
}

/** Reservations in the memory of this process, with the counters of its store. */
export class MemoryReservations {
  readonly #counts: ExpiringCounts;
  readonly #entries = new Map<string, Entry>();
  /** Records by the second in which they are removed. */
  readonly #due = new Map<number, string[]>();
  /** By table key. */
  readonly #open = new Map<string, OpenOnes>();
  #bytes = 0;

  constructor(counts: ExpiringCounts) {
    this.#counts = counts;
  }

  read(record: string): string | undefined {
    return this.#entries.get(record)?.text;
  }

  /** Those of a counter. */
  open(counter: string, now: number): OpenReservations {
    const members = [...(this.#open.get(tableKey(counter))?.members ?? [])].filter(([, expiresAt]) => expiresAt > now);
    const first = members.toSorted(([, one], [, other]) => one - other).slice(0, MOST_SHOWN);
    return { count: members.length, first: first.map(([member, expiresAt]) => openReservation(member, expiresAt)) };
  }

  /** As the script of the other stores; see {@link ReservationChange}. */
  change(change: ReservationChange): ReservationResult {
    const { key: record, before, after, opens, steps, now } = change;
    const entry = this.#entries.get(record);
    if (entry?.text !== before) return { outcome: 'changed', record: entry?.text };
    if (opens === undefined) {
      const isGone = steps.some(
        ({ key, member }) => member !== undefined && !this.#open.get(tableKey(key))?.members.has(member),
      );
      if (isGone) return { outcome: 'expired' };
      (entry as Entry).text = ownText(after);
      for (const { key, member } of steps) if (member !== undefined) this.#close(tableKey(key), member);
      return { outcome: 'done', counts: steps.map((step) => this.#count(step, now)) };
    }
    for (const { key } of steps) this.#expire(tableKey(key), now);
    const isFull = steps.some(({ key }) => (this.#open.get(tableKey(key))?.members.size ?? 0) >= MAX_OPEN);
    if (isFull || this.#entries.size >= MAX_RECORDS || this.#bytes >= MAX_BYTES) return { outcome: 'full' };
    const { isDenied, counts } = judged(steps, opens.isDenied, (key) => this.#counts.get(tableKey(key)));
    if (isDenied) return { outcome: 'denied', counts };
    this.#add(change, `${after}\n${counts.join()}`);
    for (const step of steps) {
      this.#count(step, now);
      const key = ownText(tableKey(step.key));
      const open = this.#open.get(key) ?? { members: new Map<string, number>(), next: Infinity };
      open.members.set(ownText(step.member as string), opens.expiresAt);
      open.next = Math.min(open.next, opens.expiresAt);
      this.#open.set(key, open);
    }
    return { outcome: 'done', counts };
  }

  /** Removes the records that are not kept longer, after what has expired was given back. */
  removeExpired(now: number): void {
    for (const [second, records] of this.#due) {
      if (second * 1000 > now) continue;
      this.#due.delete(second);
      for (const record of records) this.#remove(record, now);
    }
  }

  #add({ key: record, lifetime, now, steps }: ReservationChange, text: string): void {
    const own = ownText(text);
    const entry = {
      text: own,
      bytes: OVERHEAD_BYTES + 2 * textBytes(own),
      keys: steps.map(({ key }) => tableKey(key)),
    };
    this.#entries.set(ownText(record), entry);
    this.#bytes += entry.bytes;
    const second = Math.ceil((now + lifetime) / 1000);
    const due = this.#due.get(second);
    if (due === undefined) this.#due.set(second, [record]);
    else due.push(record);
  }

  #remove(record: string, now: number): void {
    const entry = this.#entries.get(record);
    if (entry === undefined) return;
    this.#entries.delete(record);
    this.#bytes -= entry.bytes;
    for (const key of entry.keys) this.#expire(key, now);
  }

  /** Ends the reservations of a counter that have expired. */
  #expire(key: string, now: number): void {
    const open = this.#open.get(key);
    if (open === undefined || open.next > now) return;
    open.next = Infinity;
    for (const [member, expiresAt] of open.members) {
      if (expiresAt > now) {
        open.next = Math.min(open.next, expiresAt);
        continue;
      }
      this.#close(key, member);
      const hits = givenBackBy(member);
      if (hits > 0) this.#counts.subtract(key, hits);
    }
  }

  #close(key: string, member: string): void {
    const open = this.#open.get(key);
    open?.members.delete(member);
    if (open?.members.size === 0) this.#open.delete(key);
  }

  /** @returns the count after it */
  #count({ key, hits, windowSeconds }: ReservationStep, now: number): number {
    return this.#counts.change(tableKey(key), hits, now, windowSeconds);
  }
}
