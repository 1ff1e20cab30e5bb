import type { OnExpiry } from '../../../src/streams/ports/reservations';

// Reservations and other calls without a store, in integers, after docs/reservations.md and docs/rules.md: nothing of
// src is used. Times are Unix milliseconds; those of buckets are microseconds.

/** What a limit has counted of a reservation: where or until when it may be given back. */
interface Hold {
  readonly hits: number;
  /** The window of a sliding or fixed window; of a bucket, the time at which it would be full. */
  readonly place: number;
  /** Of a bucket: what had been given back to it before. */
  readonly givenBefore: number;
}

interface ModelLimit {
  /** Whether calls count that are denied. */
  readonly countsDenied: boolean;
  left(now: number): number;
  fits(hits: number, now: number): boolean;
  /** Counts hits, also beyond the limit. */
  count(hits: number, now: number): void;
  hold(hits: number, now: number): Hold;
  /** @returns how many hits, in whole ones; undefined: there is nothing to change any more */
  giveBack(hold: Hold, hits: number, now: number): number | undefined;
  /** Whether what a reservation with `cancel` held is back. @param isSwept whether it has been given back */
  isBack(hold: Hold, times: { readonly expiresAt: number; readonly now: number; readonly isSwept: boolean }): boolean;
}

class Windows implements ModelLimit {
  readonly #counts = new Map<number, number>();

  constructor(
    readonly limit: number,
    readonly length: number,
    readonly isSliding: boolean,
  ) {}

  get countsDenied(): boolean {
    return !this.isSliding;
  }

  left(now: number): number {
    return Math.max(0, this.limit - this.#used(now));
  }

  fits(hits: number, now: number): boolean {
    return (hits === 0 && this.isSliding) || this.#used(now) + hits <= this.limit;
  }

  count(hits: number, now: number): void {
    this.#change(this.#windowOf(now), hits);
  }

  hold(hits: number, now: number): Hold {
    this.count(hits, now);
    return { hits, place: this.#windowOf(now), givenBefore: 0 };
  }

  giveBack({ place }: Hold, hits: number, now: number): number | undefined {
    const age = this.#windowOf(now) - place;
    if (age > (this.isSliding ? 1 : 0)) return this.isSliding ? 0 : undefined;
    const back = Math.min(hits, this.#counts.get(place) ?? 0);
    this.#change(place, -back);
    return back;
  }

  isBack({ place }: Hold, { expiresAt, now, isSwept }: { expiresAt: number; now: number; isSwept: boolean }): boolean {
    if (this.isSliding || this.#windowOf(now) === place) return isSwept;
    return expiresAt <= now && this.#windowOf(expiresAt) === place;
  }

  #used(now: number): number {
    const [window, elapsed] = [this.#windowOf(now), now % this.length];
    const before = this.isSliding ? (this.#counts.get(window - 1) ?? 0) : 0;
    return Math.ceil((before * (this.length - elapsed)) / this.length) + (this.#counts.get(window) ?? 0);
  }

  #change(window: number, by: number): void {
    this.#counts.set(window, (this.#counts.get(window) ?? 0) + by);
  }

  #windowOf(now: number): number {
    return Math.floor(now / this.length);
  }
}

const LONGEST_DEBT = 86_400_000_000;

class Bucket implements ModelLimit {
  readonly countsDenied = false;
  #full = 0;
  #given = 0;

  /** @param perHit microseconds in which a token flows in */
  constructor(
    readonly burst: number,
    readonly perHit: number,
    readonly isPostpaid = false,
  ) {}

  left(now: number): number {
    return Math.max(0, Math.floor((this.burst * this.perHit - this.#missing(now)) / this.perHit));
  }

  fits(hits: number, now: number): boolean {
    return hits === 0 || this.#missing(now) + hits * this.perHit <= this.burst * this.perHit;
  }

  count(hits: number, now: number): void {
    const most = this.burst * this.perHit + (this.isPostpaid ? LONGEST_DEBT : 0);
    this.#full = now * 1000 + Math.min(most, this.#missing(now) + hits * this.perHit);
  }

  hold(hits: number, now: number): Hold {
    this.count(hits, now);
    return { hits, place: this.#full, givenBefore: this.#given };
  }

  giveBack({ place, givenBefore }: Hold, hits: number, now: number): number {
    const own = place - (this.#given - givenBefore) - now * 1000;
    const back = Math.max(0, Math.min(hits * this.perHit, own, this.#missing(now)));
    this.#given += back;
    this.#full -= back;
    return Math.floor(back / this.perHit);
  }

  isBack(_: Hold, { isSwept }: { isSwept: boolean }): boolean {
    return isSwept;
  }

  #missing(now: number): number {
    return Math.max(0, this.#full - now * 1000);
  }
}

interface ModelRule {
  /** But that of places. */
  readonly limits: readonly ModelLimit[];
  readonly kind?: 'all_or_nothing' | 'postpaid';
  /** How many reservations are open at a time. */
  readonly places?: number;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The rules of these names in `RULES` of `reservation-caller.ts`. */
const MODEL_RULES: Readonly<Record<string, () => ModelRule>> = {
  user: () => ({ limits: [new Windows(100, MINUTE, false)] }),
  both: () => ({ limits: [new Windows(10, MINUTE, false), new Windows(100, HOUR, false)] }),
  slid100: () => ({ limits: [new Windows(100, MINUTE, true)] }),
  bucket100: () => ({ limits: [new Bucket(100, 600_000)] }),
  fast: () => ({ limits: [new Bucket(100, 100_000)] }),
  mixed: () => ({ limits: [new Bucket(40, 1_500_000), new Windows(60, HOUR, true)] }),
  all100: () => ({ limits: [new Windows(100, MINUTE, false), new Windows(300, HOUR, false)], kind: 'all_or_nothing' }),
  several: () => ({
    limits: [new Windows(10, MINUTE, true), new Bucket(100, 36_000_000), new Windows(1_000, 24 * HOUR, false)],
    kind: 'all_or_nothing',
  }),
  tokens: () => ({ limits: [new Bucket(30, 1_000_000, true)], kind: 'postpaid' }),
  usage: () => ({ limits: [new Windows(100, MINUTE, true)], kind: 'postpaid' }),
  three: () => ({ limits: [], places: 3 }),
  jobs: () => ({ limits: [new Windows(100, MINUTE, false)], places: 2 }),
};

export const MODEL_NAMES: readonly string[] = Object.keys(MODEL_RULES);

export interface Use {
  readonly name: string;
  readonly hits: number;
}

interface ModelUse {
  readonly use: Use;
  readonly holds: readonly Hold[];
  isSwept: boolean;
}

interface ModelReservation {
  readonly uses: readonly ModelUse[];
  readonly expiresAt: number;
  readonly onExpiry: OnExpiry;
  isEnded: boolean;
}

export class ReservationModel {
  readonly #rules = new Map(MODEL_NAMES.map((name) => [name, MODEL_RULES[name]!()]));
  readonly #made = new Map<string, ModelReservation>();

  /** @param isCluster each counter is changed in a step of its own: what one that is denied has taken is given back */
  constructor(readonly isCluster: boolean) {}

  /** How many hits or places are left of the limit of a rule that has the fewest, once what has expired is back. */
  left(name: string, now: number): number {
    this.#sweep(name, now);
    const { limits } = this.#rules.get(name)!;
    return Math.min(this.#freeAt(name, now), ...limits.map((limit) => limit.left(now)));
  }

  /** Gives back what has expired, in the order in which it did. */
  #sweep(name: string, now: number): void {
    const expired = [...this.#made.values()].filter(
      ({ isEnded, onExpiry, expiresAt }) => onExpiry === 'cancel' && !isEnded && expiresAt <= now,
    );
    for (const { uses } of expired.toSorted((one, other) => one.expiresAt - other.expiresAt)) {
      const own = uses.find(({ use, isSwept }) => use.name === name && !isSwept);
      if (own === undefined) continue;
      own.isSwept = true;
      this.#onEach([own], (limit, hold) => limit.giveBack(hold, hold.hits, now));
    }
  }

  reserve(id: string, uses: readonly Use[], { now, ttl, onExpiry }: { now: number; ttl: number; onExpiry: OnExpiry }) {
    for (const { name } of uses) this.#sweep(name, now);
    const isDenied = uses.some(
      ({ name, hits }) =>
        this.#freeAt(name, now) === 0 || this.#rules.get(name)!.limits.some((limit) => !limit.fits(hits, now)),
    );
    if (isDenied && !this.isCluster) return 'denied';
    const made: ModelUse[] = [];
    for (const use of uses) {
      const { limits } = this.#rules.get(use.name)!;
      const over = limits.findIndex((limit) => !limit.fits(use.hits, now));
      const taken = over < 0 ? limits : limits.slice(0, over);
      made.push({ use, holds: taken.map((limit) => limit.hold(use.hits, now)), isSwept: false });
      if (over < 0 && this.#freeAt(use.name, now) > 0) continue;
      this.#onEach(made, (limit, hold) => limit.giveBack(hold, hold.hits, now));
      return 'denied';
    }
    this.#made.set(id, { uses: made, expiresAt: now + ttl, onExpiry, isEnded: false });
    return `reserved true ${uses.map(({ name }) => this.left(name, now)).join()}`;
  }

  settle(id: string, used: number, now: number): string {
    const reservation = this.#made.get(id)!;
    const { uses, expiresAt, onExpiry } = reservation;
    reservation.isEnded = true;
    return `settled ${this.#onEach(
      uses,
      (limit, hold, { isSwept }) => {
        const isBack = onExpiry === 'cancel' && limit.isBack(hold, { expiresAt, now, isSwept });
        const more = used - (isBack ? 0 : hold.hits);
        if (more < 0) return minus(limit.giveBack(hold, -more, now));
        if (more > 0) limit.count(more, now);
        return more;
      },
      used,
    )}`;
  }

  cancel(id: string, now: number): string {
    const reservation = this.#made.get(id)!;
    if (reservation.expiresAt <= now) return 'reservation_conflict';
    reservation.isEnded = true;
    return `cancelled ${this.#onEach(reservation.uses, (limit, hold) => minus(limit.giveBack(hold, hold.hits, now)))}`;
  }

  /** A call that reserves nothing; of 0 hits, an ask of a postpaid limit. */
  call({ name, hits }: Use, now: number): string {
    const { limits, kind } = this.#rules.get(name)!;
    const isFree = this.#freeAt(name, now) > 0;
    if (kind === 'postpaid') {
      const hasRoom = limits.every((limit) => limit.fits(1, now));
      for (const limit of limits) limit.count(hits, now);
      return hasRoom ? 'OK' : 'OVER';
    }
    const fits = limits.map((limit) => (kind === 'all_or_nothing' && hits === 0) || limit.fits(hits, now));
    for (const [index, limit] of limits.entries()) {
      const isCounted = kind === 'all_or_nothing' ? !fits.includes(false) : fits[index]! || limit.countsDenied;
      if (isCounted) limit.count(hits, now);
    }
    return isFree && !fits.includes(false) ? 'OK' : 'OVER';
  }

  #freeAt(name: string, now: number): number {
    const { places = Infinity } = this.#rules.get(name)!;
    const open = [...this.#made.values()].filter(
      ({ uses, isEnded, expiresAt }) => !isEnded && expiresAt > now && uses.some(({ use }) => use.name === name),
    );
    return places - open.length;
  }

  /** @returns what each descriptor had, and what the last change of one of its counters was */
  #onEach(
    uses: readonly ModelUse[],
    change: (limit: ModelLimit, hold: Hold, use: ModelUse) => number | undefined,
    used = 0,
  ): string {
    const ended = uses.map((each) => {
      const { name, hits } = each.use;
      const { limits, places } = this.#rules.get(name)!;
      const added = each.holds.map((hold, at) => change(limits[at]!, hold, each)).filter((by) => by !== undefined);
      const reserved = places !== undefined && (hits === 0 || limits.length === 0) ? 1 : hits;
      return `${reserved}>${used}:${added.at(-1) ?? 0}`;
    });
    return ended.join();
  }
}

function minus(hits: number | undefined): number | undefined {
  return hits === undefined || hits === 0 ? hits : -hits;
}
