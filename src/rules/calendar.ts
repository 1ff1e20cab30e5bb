// oxlint-disable no-restricted-globals -- Date converts dates here, and never reads the clock
import type { CalendarConfig, UnitName } from './unit';

/** The units that a calendar has; seconds, minutes and hours begin at the same time everywhere, or nearly. */
export const CALENDAR_UNITS = ['DAY', 'WEEK', 'MONTH', 'YEAR'] as const satisfies readonly UnitName[];
export type CalendarUnit = (typeof CALENDAR_UNITS)[number];

const DAY = 86_400;

/**
 * The days, weeks, months or years of a time zone as windows. Dates are numbers of days since 1 January 1970, without
 * regard to a zone; times are in Unix seconds.
 */
export class CalendarWindows {
  readonly #zone: Intl.DateTimeFormat;
  readonly #unit: CalendarUnit;
  readonly #startsOn: number;
  /** The window of the last call of {@link at}. */
  start = 0;
  /** The first second after it. */
  end = 0;

  constructor(unit: CalendarUnit, { timeZone, startsOn }: CalendarConfig) {
    this.#zone = zoneOf(timeZone);
    this.#unit = unit;
    this.#startsOn = startsOn;
  }

  /** Moves to the window that contains a time. */
  at(nowSeconds: number): this {
    if (nowSeconds < this.start || nowSeconds >= this.end) this.#move(nowSeconds);
    return this;
  }

  #move(now: number): void {
    let first = this.#boundary(dateAt(this.#zone, now), 0);
    let next = this.#boundary(first, 1);
    // A clock that goes back over midnight shows the date of the day before again, although the new day has begun.
    while (now >= firstInstant(this.#zone, next, 0)) [first, next] = [next, this.#boundary(next, 1)];
    this.start = firstInstant(this.#zone, first, 0);
    this.end = firstInstant(this.#zone, next, 0);
  }

  /** The first date of the window that contains a date, or of one so many windows later. */
  #boundary(date: number, later: 0 | 1): number {
    if (this.#unit === 'DAY') return date + later;
    // The first day of 1970 was a Thursday, the fourth day of a week.
    if (this.#unit === 'WEEK') return date - modulo(date + 4 - this.#startsOn, 7) + 7 * later;
    const day = new Date(date * DAY * 1000);
    const [year, month] = [day.getUTCFullYear(), day.getUTCMonth()];
    if (this.#unit === 'YEAR') return dateOf(year + later, 0, 1);
    const isBefore = day.getUTCDate() < Math.min(this.#startsOn, lengthOf(year, month));
    const index = month + later - Number(isBefore);
    return dateOf(year, index, Math.min(this.#startsOn, lengthOf(year, index)));
  }
}

/** By unit, zone and first day: all rules with the same windows compute them once. */
const shared = new Map<string, CalendarWindows>();

export function calendarWindows(unit: CalendarUnit, calendar: CalendarConfig): CalendarWindows {
  const name = `${unit} ${calendar.startsOn} ${calendar.timeZone}`;
  let windows = shared.get(name);
  if (windows === undefined) shared.set(name, (windows = new CalendarWindows(unit, calendar)));
  return windows;
}

function modulo(number: number, divisor: number): number {
  return ((number % divisor) + divisor) % divisor;
}

/** @param month from 0; beyond the year, it is one of another year */
function dateOf(year: number, month: number, day: number): number {
  return Date.UTC(year, month, day) / 1000 / DAY;
}

function lengthOf(year: number, month: number): number {
  return dateOf(year, month + 1, 1) - dateOf(year, month, 1);
}

/** By zone; making one takes as long as forty look-ups. */
const zones = new Map<string, Intl.DateTimeFormat>();

/** @throws RangeError when there is no such zone */
export function zoneOf(timeZone: string): Intl.DateTimeFormat {
  let zone = zones.get(timeZone);
  if (zone === undefined) {
    zone = new Intl.DateTimeFormat('en-u-ca-iso8601-nu-latn', {
      ...{ timeZone, year: 'numeric', month: 'numeric', day: 'numeric' },
      ...{ hourCycle: 'h23', hour: 'numeric', minute: 'numeric', second: 'numeric' },
    });
    zones.set(timeZone, zone);
  }
  return zone;
}

/** By how many seconds clocks of a zone are ahead of UTC. */
function offsetAt(zone: Intl.DateTimeFormat, time: number): number {
  const shown = { year: 0, month: 0, day: 0, hour: 0, minute: 0, second: 0 };
  for (const { type, value } of zone.formatToParts(time * 1000)) {
    if (type in shown) shown[type as keyof typeof shown] = Number(value);
  }
  const { year, month, day, hour, minute, second } = shown;
  return Date.UTC(year, month - 1, day, hour, minute, second) / 1000 - time;
}

/** The date that clocks of a zone show, in days since 1 January 1970. */
export function dateAt(zone: Intl.DateTimeFormat, time: number): number {
  return Math.floor((time + offsetAt(zone, time)) / DAY);
}

/**
 * The first instant at which clocks of a zone show a time of a date, or a later one: mostly that time; the change of
 * the clock if that leaves the time out, or the whole date.
 *
 * @param seconds of the day; beyond it, they are of the next dates
 */
export function firstInstant(zone: Intl.DateTimeFormat, date: number, seconds: number): number {
  const local = date * DAY + seconds;
  const before = offsetAt(zone, local - DAY);
  const after = offsetAt(zone, local + DAY);
  // Where the time comes twice, the earlier one is taken.
  for (const offset of [Math.max(before, after), Math.min(before, after)]) {
    if (before === after || offsetAt(zone, local - offset) === offset) return local - offset;
  }
  let [low, high] = [local - DAY, local + DAY];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(zone, middle) === before) low = middle;
    else high = middle;
  }
  return high;
}
