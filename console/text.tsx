import { Fragment } from 'preact';
import type { RuleReference } from '../src/explain/explanation';
import type { LimitInWords } from '../src/explain/text';
import type { ListedRule } from '../src/operators/answers';
import { activeText, activityText, calendarText, windowText } from '../src/rules/unit';
import { shortened } from '../src/text/excerpt';
import { visibleLine } from '../src/text/visible';

/**
 * A text of a caller or of a file: never more than text, and in its own direction. What cannot be seen, or would turn
 * what follows, is shown by its code. A long one wraps at its separators.
 */
export function Text({ text }: { readonly text: string }) {
  const parts = visibleLine(shortened(text)).split(/(?<=[.,/_])(?=[^.,/_])(?<!\d,(?=\d))/);
  return (
    <bdi class="name">
      {parts.map((part, index) => (
        <Fragment key={index}>
          {part}
          {index < parts.length - 1 && <wbr />}
        </Fragment>
      ))}
    </bdi>
  );
}

interface LinkProps {
  readonly href: string;
  readonly text: string;
  readonly kind?: string;
}

export function Link({ href, text, kind }: LinkProps) {
  return (
    <a class={kind} href={href}>
      <Text text={text} />
    </a>
  );
}

export function Code({ text }: { readonly text: string }) {
  return (
    <code>
      <Text text={text} />
    </code>
  );
}

/** With commas between thousands. Formatters of the browser take a tenth of a second to be made. */
export function count(value: number): string {
  return value.toFixed(0).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}

/** `1 hit`, `1,200 hits`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

const SIZES = [
  [1e12, 'T'],
  [1e9, 'B'],
  [1e6, 'M'],
  [1e3, 'K'],
] as const;

/** A rate, a duration or a total at a glance: `4,218`, `802K`. */
export function measure(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (value >= 10_000) {
    // Also 999,999 is 1M.
    const [size, name] = SIZES.find(([each]) => value >= 0.9995 * each)!;
    return `${Number((value / size).toPrecision(3))}${name}`;
  }
  return value >= 100 || value === 0 ? count(value) : value.toFixed(value >= 1 ? 1 : 2);
}

/** A part of a whole, in percent; undefined without a whole. */
export function shareOf(part: number | null | undefined, whole: number | null | undefined): number | undefined {
  if (part === null || part === undefined || !whole) return undefined;
  return Math.max(0, Math.min(100, (100 * part) / whole));
}

/** `2.1 %`, `97 %`; what is not nothing is never 0. */
export function percent(share: number | undefined): string {
  if (share === undefined) return '–';
  if (share > 0 && share < 0.1) return 'under 0.1 %';
  return `${share.toFixed(share === 0 || (share >= 10 && share <= 99) || share >= 99.95 ? 0 : 1)} %`;
}

/** The zone of all times: `UTC`, `UTC+5:30`. */
export const zone = zoneText(-new Date().getTimezoneOffset());

function zoneText(minutes: number): string {
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `UTC${minutes === 0 ? '' : `${minutes > 0 ? '+' : '−'}${hours}`}${rest === 0 ? '' : `:${rest}`}`;
}

/** A time in Unix seconds; with its day if it is not today. */
export function clock(seconds: number): string {
  const date = new Date(seconds * 1000);
  const isToday = date.toDateString() === new Date().toDateString();
  const day = isToday
    ? ''
    : `${date.toLocaleDateString(undefined, { weekday: 'short', day: 'numeric', month: 'short' })} `;
  const parts = [date.getHours(), date.getMinutes(), date.getSeconds()];
  return day + parts.map((part) => String(part).padStart(2, '0')).join(':');
}

/** A time in Unix seconds without its seconds. */
export function shortClock(seconds: number): string {
  return clock(seconds).slice(0, -3);
}

const [MINUTE, HOUR, WHOLE_DAY] = [60, 3_600, 86_400];

/** `12 s`, `3 min 25 s`, `1 h 16 min`, `5 d 2 h`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  function pair(unit: number, name: string, [lower, lowerName]: readonly [number, string]): string {
    const rest = Math.floor((whole % unit) / lower);
    return `${Math.floor(whole / unit)} ${name}${rest === 0 ? '' : ` ${rest} ${lowerName}`}`;
  }
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return pair(MINUTE, 'min', [1, 's']);
  return whole < WHOLE_DAY ? pair(HOUR, 'h', [MINUTE, 'min']) : pair(WHOLE_DAY, 'd', [HOUR, 'h']);
}

/** `since 03:16:05, 31 min`, without seconds when it is long ago. */
export function sinceText(seconds: number): string {
  const elapsed = Math.max(0, Date.now() / 1000 - seconds);
  return `since ${clock(seconds)}, ${duration(elapsed < 600 ? elapsed : elapsed - (elapsed % MINUTE))}`;
}

/** `03:12:40 to 03:16:05, 3 min 25 s`. */
export function spanText(from: number, until: number): string {
  return `${clock(from)} to ${clock(until)}, ${duration(until - from)}`;
}

export function secondsOf(iso: string): number {
  return Date.parse(iso) / 1000;
}

/** A time of the API in the zone of the reader, and in UTC when it is pointed at. */
export function Time({ iso }: { readonly iso: string }) {
  return (
    <time class="nowrap" dateTime={iso} title={`${iso.slice(0, 19).replace('T', ' ')} UTC`}>
      {clock(secondsOf(iso))}
    </time>
  );
}

/** A limit in words: `10 a minute`, `token bucket, 5 a second, burst 20`. */
export function limitText({
  requestsPerUnit,
  unit,
  unitMultiplier,
  calendar,
  algorithm,
  burst,
  postpaid,
  lease,
  active,
  activity,
  blockFor,
}: LimitInWords): string {
  const multiplier = unitMultiplier ?? 1;
  const window = windowText(unit ?? '', multiplier);
  const each = multiplier === 1 ? (window === 'hour' ? 'an' : 'a') : 'in';
  const where = calendar === null ? '' : ` ${calendarText(unit ?? '', calendar)}`;
  const rate = `${count(requestsPerUnit ?? 0)} ${each} ${window}${where}`;
  const most = algorithm === 'max_concurrent' ? `${count(requestsPerUnit ?? 0)} at a time` : rate;
  const parts = algorithm === null || most !== rate ? [most] : [algorithm.replace('_', ' '), rate];
  if (burst !== null) parts.push(`burst ${count(burst)}`);
  if (postpaid) parts.push('postpaid');
  if (typeof lease === 'boolean') parts.push(lease ? 'leased' : 'not leased');
  if (blockFor) parts.push(`blocks for ${blockedTime(blockFor)}`);
  if (active) parts.push(`active ${activeText(active)}${activity ? activityText(activity) : ''}`);
  return parts.join(', ');
}

function blockedTime({ first, factor, most }: NonNullable<LimitInWords['blockFor']>): string {
  return `${duration(first)}${factor === 1 ? '' : `, each time ${factor} times as long, up to ${duration(most)}`}`;
}

/** What a rule does, in words. */
export function effectText({ key, limit, limits }: Pick<ListedRule, 'key' | 'limit' | 'limits'>): string {
  if (limits !== null) return limits.map(limitText).join('; ');
  if (limit === null) return key === 'on_unmatched' ? 'denied' : 'no limit';
  return limit.unlimited ? 'unlimited' : limitText(limit);
}

export function placeText(place: RuleReference['place']): string {
  if (place === null) return '';
  return place.line === 0 ? place.file : `${place.file}:${place.line}`;
}
