import { dateAt, firstInstant, zoneOf } from './calendar';
import { type ActiveConfig, type ActiveRange, WEEKDAYS } from './unit';

const MINUTES_OF_DAY = 24 * 60;
const SECONDS_OF_DAY = MINUTES_OF_DAY * 60;
const DAYS_OF_WEEK = 7;
/** Hours that do not change on so many dates, a week and what clocks may skip, never change. */
const MOST_DATES = DAYS_OF_WEEK + 3;

/** The minutes of the day from which a range lasts, and up to which; after midnight, they are of the next day. */
function minutesOf({ from, to }: Pick<ActiveRange, 'from' | 'to'>): readonly [from: number, to: number] {
  const [start, end] = [from, to].map((text) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3))) as [
    number,
    number,
  ];
  return [start, end < start ? end + MINUTES_OF_DAY : end];
}

/** The hours in which a limit applies: `active`. Times are in Unix seconds. */
export class Schedule {
  readonly #zone: Intl.DateTimeFormat;
  readonly #ranges: readonly { readonly days: ReadonlySet<number>; readonly from: number; readonly to: number }[];
  #isActive = false;
  /** In between, {@link #isActive} holds. */
  #since = 0;
  #until = 0;
  #changesAt = 0;

  constructor({ timeZone, ranges }: ActiveConfig) {
    this.#zone = zoneOf(timeZone);
    this.#ranges = ranges.map((range) => {
      const [from, to] = minutesOf(range);
      return { days: new Set(range.days.map((day) => WEEKDAYS.indexOf(day))), from: from * 60, to: to * 60 };
    });
  }

  isActiveAt(nowSeconds: number): boolean {
    if (nowSeconds < this.#since || nowSeconds >= this.#until) this.#move(nowSeconds);
    return this.#isActive;
  }

  /** When that is different for the first time after a time; Infinity: never. */
  changesAfter(nowSeconds: number): number {
    this.isActiveAt(nowSeconds);
    return this.#changesAt;
  }

  #move(now: number): void {
    const today = dateAt(this.#zone, now);
    this.#since = now;
    this.#isActive = false;
    this.#changesAt = Infinity;
    // A range of the day before yesterday may last until now where a clock has skipped a date.
    for (let date = today - 2; date < today + MOST_DATES; date += 1) {
      // No clock is further ahead: what begins on this date or later begins after that.
      this.#until = (date - 1) * SECONDS_OF_DAY;
      if (this.#changesAt < this.#until) {
        this.#until = this.#changesAt;
        return;
      }
      for (const [start, end] of this.#spansOf(date)) this.#add(start, end, now);
    }
    this.#changesAt = Infinity;
  }

  /** @param start not before those of the spans before it */
  #add(start: number, end: number, now: number): void {
    if (end <= now) return;
    if (this.#isActive) {
      if (start <= this.#changesAt) this.#changesAt = Math.max(this.#changesAt, end);
    } else if (start <= now) {
      this.#isActive = true;
      this.#changesAt = end;
    } else this.#changesAt = Math.min(this.#changesAt, start);
  }

  #spansOf(date: number): readonly (readonly [start: number, end: number])[] {
    // The first day of 1970 was a Thursday.
    const day = (((date + 3) % DAYS_OF_WEEK) + DAYS_OF_WEEK) % DAYS_OF_WEEK;
    const ofDay = this.#ranges.filter(({ days }) => days.has(day));
    return ofDay
      .map(({ from, to }) => [firstInstant(this.#zone, date, from), firstInstant(this.#zone, date, to)] as const)
      .filter(([start, end]) => start < end)
      .toSorted(([one], [other]) => one - other);
  }
}

/** By text: all limits of the same hours compute them once. */
const shared = new Map<string, Schedule>();

export function scheduleOf(active: ActiveConfig): Schedule {
  const name = JSON.stringify(active);
  let schedule = shared.get(name);
  if (schedule === undefined) shared.set(name, (schedule = new Schedule(active)));
  return schedule;
}

/** Whether no minute of a week is in the hours of both. */
export function areDisjoint(one: ActiveConfig, other: ActiveConfig): boolean {
  if (one.timeZone !== other.timeZone) return false;
  const taken = new Set(minutesOfWeek(one));
  for (const minute of minutesOfWeek(other)) if (taken.has(minute)) return false;
  return true;
}

function* minutesOfWeek({ ranges }: ActiveConfig): IterableIterator<number> {
  for (const range of ranges) {
    const [from, to] = minutesOf(range);
    for (const day of range.days) {
      const start = WEEKDAYS.indexOf(day) * MINUTES_OF_DAY;
      for (let minute = from; minute < to; minute += 1) yield (start + minute) % (DAYS_OF_WEEK * MINUTES_OF_DAY);
    }
  }
}
