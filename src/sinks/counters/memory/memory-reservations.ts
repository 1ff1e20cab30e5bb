import { type Algorithm, type LimitState, MOST_REPORTED } from '../../../counting/algorithms/algorithm';
import { type ExpiringCounts, lifetimeOf } from '../../../counting/counts';
import {
  type Hold,
  amountOf,
  deciderOf,
  foundText,
  hitsOf,
  holdIn,
  holdOf,
  returned,
} from '../../../counting/reserved';
import {
  KEPT,
  LONGEST_KNOWN,
  MAX_OPEN,
  MOST_SHOWN,
  type OpenReservations,
  type OpenedReservation,
  type ReservationChange,
  type ReservationResult,
  type ReservationStep,
  type StepDone,
  lineOf,
} from '../../../streams/ports/reservations';
import { endedAtOnce, heldMember, openReservation } from '../open-reservations';
import { judgeReservation } from '../../../counting/group';
import { ownText, tableKey, textBytes } from '../../../text/table-key';

export interface ReservationBounds {
  /** Most open reservations, and most bytes of them, estimated; of a domain, half. Each has at most 16 KiB. */
  readonly open: Readonly<Room>;
  /** Most bytes of records that only answer repeated calls, estimated: those that were written last. */
  readonly answerBytes: number;
}

const BOUNDS: ReservationBounds = {
  open: { records: 100_000, bytes: 64 * 1024 * 1024 },
  answerBytes: 16 * 1024 * 1024,
};
/** The memory of a record in addition to twice its texts, which are also in lists. */
const OVERHEAD_BYTES = 512;
/**
 * The work of one turn when reservations expire: of so many that are open yet, or of 200 members of others. Measured: 1
 * ms of CPU time.
 */
const WORK_OF_TURN = 4_000;
const MEMBERS_OF_TURN = 200;
const WORK_OF_MEMBER = WORK_OF_TURN / MEMBERS_OF_TURN;

interface Room {
  records: number;
  bytes: number;
}

/** A record, and the memory that it takes. */
interface Entry {
  readonly text: string;
  readonly bytes: number;
  /** When it is removed, in Unix milliseconds. */
  readonly until: number;
}

interface OpenEntry extends Entry {
  readonly expiresAt: number;
  readonly domain: string;
  /** The members of the reservation, and the counters in whose lists they are, by table key. */
  readonly members: readonly (readonly [counter: string, member: string])[];
}

/** A member of a list: when it expires, in Unix milliseconds, and what it has added to the counter. */
interface Member {
  readonly expiresAt: number;
  readonly held: number;
  /** What gives back to a limit that an algorithm decides; undefined for any other one. */
  readonly decided?: Decided | undefined;
}

interface Decided {
  readonly algorithm: Algorithm;
  readonly hold: Hold;
}

/** The open reservations of a counter. */
interface OpenOnes {
  readonly members: Map<string, Member>;
  /** None expires before. */
  next: number;
}

/** Reservations in the memory of this process, on the counts of its store. */
export class MemoryReservations {
  readonly #counts: ExpiringCounts;
  readonly #bounds: ReservationBounds;
  readonly #onGivenBack: (() => void) | undefined;
  readonly #open = new Map<string, OpenEntry>();
  /** What open reservations take, in all and by domain. */
  readonly #used: Room = { records: 0, bytes: 0 };
  readonly #domains = new Map<string, Room>();
  /**
   * Records that hold nothing any more: the newest, and those of the time before, which go as a whole when the newest
   * are half of all.
   */
  #answers: readonly [newest: Map<string, Entry>, older: Map<string, Entry>] = [new Map(), new Map()];
  #newestBytes = 0;
  /** The open reservations of each counter, by table key. */
  readonly #lists = new Map<string, OpenOnes>();
  /** What was given back to buckets, by table key: in microseconds, and until when it has to be known. */
  readonly #givenBack = new Map<string, { readonly amount: number; until: number }>();

  /** @param onGivenBack called for each counter to which a reservation gives back that has expired */
  constructor(
    counts: ExpiringCounts,
    { bounds = BOUNDS, onGivenBack }: { readonly bounds?: ReservationBounds; readonly onGivenBack?: () => void } = {},
  ) {
    this.#counts = counts;
    this.#bounds = bounds;
    this.#onGivenBack = onGivenBack;
  }

  read(record: string): string | undefined {
    const [newest, older] = this.#answers;
    return (this.#open.get(record) ?? newest.get(record) ?? older.get(record))?.text;
  }

  /** The open reservations of a counter. */
  open(counter: string, now: number): OpenReservations {
    const members = [...(this.#lists.get(tableKey(counter))?.members ?? [])].filter(
      ([, { expiresAt }]) => expiresAt > now,
    );
    const first = members.toSorted(([, one], [, other]) => one.expiresAt - other.expiresAt).slice(0, MOST_SHOWN);
    return {
      count: members.length,
      first: first.map(([member, { expiresAt, held }]) => openReservation(heldMember(member, held), expiresAt)),
    };
  }

  /** As the script of the other stores; see {@link ReservationChange}. */
  change(change: ReservationChange, now: number): ReservationResult {
    const record = this.read(change.key);
    if (record !== change.before) return { outcome: 'changed', record };
    return change.opens === undefined ? this.#end(change, now) : this.#reserve(change, { ...change.opens, now });
  }

  /**
   * Ends reservations that have expired, and removes the records that are not kept longer. Yields when other work is
   * due.
   */
  *removeExpired(now: number): Generator<undefined> {
    let work = 0;
    for (const [record, entry] of this.#open) {
      work += 1;
      if (entry.expiresAt <= now) {
        for (const [counter] of entry.members) work += WORK_OF_MEMBER * this.#expire(counter, now, MEMBERS_OF_TURN);
        // Otherwise, others of the counter have expired before: it is ended with the next sweep.
        if (!entry.members.some(([counter, member]) => this.#lists.get(counter)?.members.has(member))) {
          this.#forget(record, entry);
          this.#remember(record, entry);
        }
      }
      if (work < WORK_OF_TURN) continue;
      yield;
      work = 0;
    }
    for (const [counter, { until }] of this.#givenBack) if (until <= now) this.#givenBack.delete(counter);
    for (const answers of this.#answers) {
      for (const [record, { until }] of answers) if (until <= now) answers.delete(record);
    }
  }

  #reserve(
    { key: record, after, lifetime, now: at, steps }: ReservationChange,
    { domain, ttl, isDenied: isDeniedAnyway, now }: OpenedReservation & { readonly now: number },
  ): ReservationResult {
    // All processes with this memory have one clock: the caller has answered this time.
    const expiresAt = at + ttl;
    for (const { key } of steps) this.#expire(tableKey(key), now, endedAtOnce(steps.length));
    const held = steps.filter(({ member }) => member !== undefined);
    const full = held.length === 0 ? undefined : this.#fullOf(held, domain);
    if (full !== undefined) return { outcome: 'full', of: full };
    const { isDenied, steps: judged } = judgeReservation(steps, isDeniedAnyway, {
      count: (key) => this.#counts.get(tableKey(key)),
      state: ({ key, limit }) => this.#state(tableKey(key), limit.algorithm!, now),
    });
    const holds = steps.map(({ key, limit, member, hits }, index) => {
      const before = judged[index]!.states?.[0];
      if (isDenied || member === undefined || before === undefined) return [];
      const givenBack = this.#givenBack.get(tableKey(key));
      if (givenBack !== undefined) givenBack.until = now + LONGEST_KNOWN;
      return holdOf(limit.algorithm!, before, hits, givenBack?.amount ?? 0);
    });
    const done = judged.map(({ count, added, states }, index) => {
      return { count, added, found: states === undefined ? '' : foundText(states[0], holds[index]!) };
    });
    if (isDenied) return { outcome: 'denied', steps: done };
    const members = steps.flatMap((step, index) => {
      const algorithm = deciderOf(step.limit);
      const decided = algorithm && { algorithm, hold: holds[index]! };
      return this.#enter(step, { expiresAt, held: done[index]!.added, decided });
    });
    for (const [index, step] of steps.entries()) {
      const state = judged[index]!.states?.[1];
      if (state === undefined) this.#count(step, now);
      else this.#keep(tableKey(step.key), step.limit.algorithm!, { state, now });
    }
    const until = now + lifetime;
    if (members.length > 0) {
      const entry = entryOf(textOf(after!, done), until);
      this.#add(record, { ...entry, expiresAt, domain: ownText(tableKey(domain)), members });
    } else if (after !== undefined) this.#remember(record, entryOf(after, until));
    return { outcome: 'done', steps: done };
  }

  #end({ key: record, after = '', lifetime, steps: asked }: ReservationChange, now: number): ReservationResult {
    // What has expired was given back.
    const steps = asked.map((step) => {
      const { key, hits, member = '', held = 0 } = step;
      const open = this.#lists.get(tableKey(key));
      const isGone = member.startsWith('c') && open?.members.has(member) !== true;
      return isGone ? { ...step, hits: hits + held } : step;
    });
    const entry = this.#open.get(record);
    const done = steps.map((step): StepDone => {
      const algorithm = deciderOf(step.limit);
      if (algorithm !== undefined) return { count: 0, added: this.#settle(step, algorithm, now), found: '' };
      const before = this.#counts.get(tableKey(step.key));
      const count = this.#count(step, now);
      return { count, added: count - before, found: '' };
    });
    if (entry !== undefined) {
      this.#forget(record, entry);
      // Also the lists of counters whose window has ended, which have no step.
      for (const [counter, member] of entry.members) this.#leave(counter, member);
    }
    // The record of a reservation that holds nothing is kept as long as its id can be ended.
    const kept = entry === undefined ? lifetime : Math.min(lifetime, KEPT);
    this.#remember(record, entryOf(textOf(after, done), now + kept));
    return { outcome: 'done', steps: done };
  }

  /** Counts what was used above what was held, or gives the rest back. Returns by how many hits the counter changes. */
  #settle({ key, hits, hold = '' }: ReservationStep, algorithm: Algorithm, now: number): number {
    const counter = tableKey(key);
    const before = this.#state(counter, algorithm, now);
    if (hits >= 0) {
      const { state } = algorithm.decide(before, Math.min(hits, MOST_REPORTED), 'report');
      if (state !== before) this.#keep(counter, algorithm, { state, now });
      return hits;
    }
    return hold === '' ? 0 : -this.#return(counter, -hits, { algorithm, hold: holdIn(hold), now });
  }

  /** @returns how many hits were given back */
  #return(counter: string, hits: number, { algorithm, hold, now }: Decided & { readonly now: number }): number {
    const givenBack = this.#givenBack.get(counter)?.amount ?? 0;
    const back = { amount: amountOf(algorithm, hits), hold, givenBack };
    const { state, amount } = returned(algorithm, this.#state(counter, algorithm, now), back);
    this.#keep(counter, algorithm, { state, now });
    if (algorithm.name === 'token_bucket' && amount > 0) {
      this.#givenBack.set(ownText(counter), { amount: givenBack + amount, until: now + LONGEST_KNOWN });
    }
    return hitsOf(algorithm, amount);
  }

  #fullOf(held: readonly ReservationStep[], domain: string): 'counter' | 'domain' | 'store' | undefined {
    const unbounded = held.filter(
      ({ limit, denies }) => denies === 'never' || limit.algorithm?.name !== 'max_concurrent',
    );
    if (unbounded.some(({ key }) => (this.#lists.get(tableKey(key))?.members.size ?? 0) >= MAX_OPEN)) return 'counter';
    const { records, bytes } = this.#bounds.open;
    if (isFull(this.#used, this.#bounds.open)) return 'store';
    const used = this.#domains.get(tableKey(domain));
    return used !== undefined && isFull(used, { records: records / 2, bytes: bytes / 2 }) ? 'domain' : undefined;
  }

  #add(record: string, entry: OpenEntry): void {
    this.#open.set(ownText(record), entry);
    const used = this.#domains.get(entry.domain) ?? { records: 0, bytes: 0 };
    this.#domains.set(entry.domain, used);
    for (const room of [this.#used, used]) {
      room.records += 1;
      room.bytes += entry.bytes;
    }
  }

  #forget(record: string, { bytes, domain }: OpenEntry): void {
    this.#open.delete(record);
    const used = this.#domains.get(domain)!;
    for (const room of [this.#used, used]) {
      room.records -= 1;
      room.bytes -= bytes;
    }
    if (used.records === 0) this.#domains.delete(domain);
  }

  #remember(record: string, { text, bytes, until }: Entry): void {
    if (this.#newestBytes + bytes > this.#bounds.answerBytes / 2) {
      this.#answers = [new Map(), this.#answers[0]];
      this.#newestBytes = 0;
    }
    const [newest, older] = this.#answers;
    older.delete(record);
    newest.set(ownText(record), { text, bytes, until });
    this.#newestBytes += bytes;
  }

  /**
   * Ends reservations of a counter that have expired, at most so many, in the order in which they did: it decides how
   * much a bucket gets back. Returns how many.
   */
  #expire(counter: string, now: number, most: number): number {
    const open = this.#lists.get(counter);
    if (open === undefined || open.next > now) return 0;
    open.next = Infinity;
    const expired: (readonly [member: string, expiresAt: number])[] = [];
    for (const [member, { expiresAt }] of open.members) {
      if (expiresAt <= now) expired.push([member, expiresAt]);
      else open.next = Math.min(open.next, expiresAt);
    }
    expired.sort(([, one], [, other]) => one - other);
    if (expired.length > most) open.next = expired[most]![1];
    const ended = expired.slice(0, most);
    for (const [member] of ended) this.#giveBack(counter, member, now);
    return ended.length;
  }

  #giveBack(counter: string, member: string, now: number): void {
    const { held = 0, decided } = this.#lists.get(counter)?.members.get(member) ?? {};
    if (held > 0 && member.startsWith('c')) {
      this.#onGivenBack?.();
      if (decided === undefined) this.#counts.subtract(counter, held);
      else this.#return(counter, held, { ...decided, now });
    }
    this.#leave(counter, member);
  }

  /** How many reservations of a counter are open. @param counter by table key */
  openAt(counter: string, now: number): number {
    this.#expire(counter, now, MAX_OPEN);
    return this.#lists.get(counter)?.members.size ?? 0;
  }

  #state(counter: string, algorithm: Algorithm, now: number): LimitState {
    if (algorithm.name === 'max_concurrent')
      return { previous: 0, current: this.openAt(counter, now), now: now * 1000 };
    const stored = this.#counts.state(counter);
    return stored === undefined ? algorithm.empty(now * 1000) : algorithm.at(stored, now * 1000);
  }

  #keep(
    counter: string,
    algorithm: Algorithm,
    { state, now }: { readonly state: LimitState; readonly now: number },
  ): void {
    if (algorithm.name !== 'max_concurrent') this.#counts.setState(counter, state, now, lifetimeOf(algorithm, state));
  }

  #enter({ key, member }: ReservationStep, own: Member): OpenEntry['members'] {
    if (member === undefined) return [];
    const [counter, name] = [ownText(tableKey(key)), ownText(member)];
    const open = this.#lists.get(counter) ?? { members: new Map<string, Member>(), next: Infinity };
    open.members.set(name, own);
    open.next = Math.min(open.next, own.expiresAt);
    this.#lists.set(counter, open);
    return [[counter, name]];
  }

  #leave(counter: string, member: string): void {
    const open = this.#lists.get(counter);
    open?.members.delete(member);
    if (open?.members.size === 0) this.#lists.delete(counter);
  }

  /** @returns the count after it */
  #count({ key, hits, limit }: ReservationStep, now: number): number {
    return this.#counts.change(tableKey(key), hits, now, limit);
  }
}

function isFull(used: Room, most: Room): boolean {
  return used.records >= most.records || used.bytes >= most.bytes;
}

function entryOf(text: string, until: number): Entry {
  const own = ownText(text);
  return { text: own, bytes: OVERHEAD_BYTES + 2 * textBytes(own), until };
}

function textOf(after: string, done: readonly StepDone[]): string {
  return done.length === 0 ? after : `${after}\n${done.map(lineOf).join()}`;
}
