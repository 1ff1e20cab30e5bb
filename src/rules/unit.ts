import { formatDuration } from '../text/duration';

/** The units of a limit as the protocol names them, numbered as `envoy.type.v3.RateLimitUnit`. */
export const UNIT_NAMES = ['UNKNOWN', 'SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK'] as const;

/** `UNKNOWN`: of a limit with `max_concurrent`. */
export type UnitName = (typeof UNIT_NAMES)[number];

/** The unit of time of a limit. */
export interface Unit {
  readonly name: UnitName;
  /** The number of the unit in the protocol. */
  readonly number: number;
  /** The length of the window. A month has 30 days and a year 365, as in the Go service. */
  readonly seconds: number;
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** By name. Without a unit, reservations are counted, which are open for at most an hour. */
export const UNITS: Readonly<Record<UnitName, Unit>> = {
  UNKNOWN: unitOf('UNKNOWN', HOUR),
  SECOND: unitOf('SECOND', 1),
  MINUTE: unitOf('MINUTE', MINUTE),
  HOUR: unitOf('HOUR', HOUR),
  DAY: unitOf('DAY', DAY),
  WEEK: unitOf('WEEK', 7 * DAY),
  MONTH: unitOf('MONTH', 30 * DAY),
  YEAR: unitOf('YEAR', 365 * DAY),
};

function unitOf(name: UnitName, seconds: number): Unit {
  return Object.freeze({ name, number: UNIT_NAMES.indexOf(name), seconds });
}

/** The longest window of a limit, in seconds: 10 years. */
export const MAX_WINDOW_SECONDS = 10 * UNITS.YEAR.seconds;

/**
 * The longest time in which a token bucket may fill, in seconds: 100 years. Up to it, the time at which it is full is
 * exact in microseconds.
 */
export const MAX_FILL_SECONDS = 100 * UNITS.YEAR.seconds;

/** A window in words: `minute`, `5 minutes`. */
export function windowText(unit: string, multiplier: number): string {
  const name = unit.toLowerCase();
  return multiplier === 1 ? name : `${multiplier} ${name}s`;
}

/** What a limit allows, in words: `5 per minute`, `5 at a time`. */
export function rateText(requests: number | null, unit: string, multiplier: number): string {
  return unit === 'UNKNOWN' ? `${requests} at a time` : `${requests} per ${windowText(unit, multiplier)}`;
}

/** The days of a week, as rule files name them. */
export const WEEKDAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];

/** The time zone of a window of the calendar, and its first day. */
export interface CalendarConfig {
  /** A name that `Intl` knows. */
  readonly timeZone: string;
  /**
   * The first day of a week, from 1, Monday, to 7; of a month, from 1 to 31, where a shorter one has its last day;
   * otherwise 1.
   */
  readonly startsOn: number;
}

/** Where a window of the calendar begins, in words: only weeks and months have a first day that can be chosen. */
export function calendarText(unit: string, { timeZone, startsOn }: CalendarConfig): string {
  const from = unit === 'WEEK' ? ` from ${WEEKDAYS[startsOn - 1]}` : unit === 'MONTH' ? ` from day ${startsOn}` : '';
  return `in ${timeZone}${from}`;
}

/** A time in whole seconds as rule files have it: `1m30s`. */
export function durationText(seconds: number): string {
  return formatDuration(seconds * 1000);
}

/** For how long a limit denies all calls after one that is over it. All in whole seconds. */
export interface BlockConfig {
  readonly first: number;
  /** By how much a block is longer than the one before it, which is not forgotten; a whole number from 1 to 10. */
  readonly factor: number;
  /** The longest block. */
  readonly most: number;
  /** How long after its end a block is forgotten. */
  readonly forgottenAfter: number;
}

/** A block as `/rlconfig` has it: `10m`, or `1m factor=2 most=1h forgotten_after=24h`. */
export function blockText({ first, factor, most, forgottenAfter }: BlockConfig): string {
  if (factor === 1) return durationText(first);
  const growth = `most=${durationText(most)} forgotten_after=${durationText(forgottenAfter)}`;
  return `${durationText(first)} factor=${factor} ${growth}`;
}

/** The hours in which a limit applies. */
export interface ActiveConfig {
  /** A name that `Intl` knows. */
  readonly timeZone: string;
  /** At least one. */
  readonly ranges: readonly ActiveRange[];
}

/** Hours of some days of the week. */
export interface ActiveRange {
  /** Names as {@link WEEKDAYS} has them, in the order of the week; at least one. */
  readonly days: readonly string[];
  /** `HH:MM`. A range that ends before it begins ends on the next day. */
  readonly from: string;
  readonly to: string;
}

/** Hours in words: `monday-friday 08:00-18:00 Europe/Berlin`; for every day, without names of days. */
export function activeText({ timeZone, ranges }: ActiveConfig): string {
  const texts = ranges.map(({ days, from, to }) => `${daysText(days)}${from}-${to}`);
  return `${texts.join(',')} ${timeZone}`;
}

function daysText(days: readonly string[]): string {
  if (days.length === WEEKDAYS.length) return '';
  const [first = '', last = ''] = [days[0], days.at(-1)];
  const isRun = days.length > 2 && WEEKDAYS.indexOf(last) - WEEKDAYS.indexOf(first) === days.length - 1;
  return `${isRun ? `${first}-${last}` : days.join('+')} `;
}

/** Whether a limit with `active` hours applies, and when that changes. */
export interface LimitActivity {
  readonly isActive: boolean;
  /** In the format of ISO 8601; null: never. */
  readonly changesAt: string | null;
}

/** Until when such hours last, or do not, to follow their text. */
export function activityText({ isActive, changesAt }: LimitActivity): string {
  const when = changesAt === null ? '' : ` until ${changesAt}`;
  return isActive ? when : `, not now${when}`;
}

/** A window in keys of statistics: `minute`, `5minute`; without one `concurrent`. */
export function windowLabel(unit: string, multiplier: number): string {
  if (unit === 'UNKNOWN') return 'concurrent';
  return `${multiplier === 1 ? '' : multiplier}${unit.toLowerCase()}`;
}

/** The unit with this number in the protocol; undefined for UNKNOWN and for numbers that have no unit. */
export function unitByNumber(number: number): Unit | undefined {
  const name = UNIT_NAMES[number];
  return name === undefined || name === 'UNKNOWN' ? undefined : UNITS[name];
}

/**
 * The unit of this name in any case (rule files write `second`, the protocol `SECOND`); undefined when there is none.
 */
export function unitByName(name: string): Unit | undefined {
  return unitByNumber((UNIT_NAMES as readonly string[]).indexOf(name.toUpperCase()));
}
