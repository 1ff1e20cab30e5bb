import { Fragment } from 'preact';
import type { RuleReference } from '../src/explain/explanation';
import type { LimitInWords } from '../src/explain/text';
import type { ListedRule } from '../src/operators/answers';
import { activeText, activityText, blockText, calendarText, windowText } from '../src/rules/unit';
import { shortened } from '../src/text/excerpt';
import { visibleLine } from '../src/text/visible';

/**
 * A text of a caller or of a file: never more than text, and in its own direction. What cannot be seen, or would turn
 * what follows, is shown by its code. A long one wraps at its separators.
 */
export function Text({ text }: { readonly text: string }) {
  const parts = visibleLine(shortened(text)).split(/(?<=[.,/_])(?=[^.,/_])/);
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

const UNITS = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const HUNDREDTHS = new Intl.NumberFormat('en', { maximumFractionDigits: 2, minimumFractionDigits: 2 });
const TENTHS = new Intl.NumberFormat('en', { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

export function count(value: number): string {
  return UNITS.format(value);
}

/** A rate, a duration or a total at a glance: `4,218`, `802K`. */
export function measure(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (value >= 10_000) return SHORT.format(value);
  return (value >= 100 || value === 0 ? UNITS : value >= 1 ? TENTHS : HUNDREDTHS).format(value);
}

/** A part of a whole, in percent; undefined without a whole. */
export function shareOf(part: number | null | undefined, whole: number | null | undefined): number | undefined {
  if (part === null || part === undefined || !whole) return undefined;
  return Math.max(0, Math.min(100, (100 * part) / whole));
}

/** `2.1 %`, `97 %`; what is not nothing is never 0. */
export function percent(share: number | undefined): string {
  if (share === undefined) return '–';
  if (share === 0 || share >= 99.95) return `${UNITS.format(share)} %`;
  return `${share < 0.1 ? 'under 0.1' : (share < 10 || share > 99 ? TENTHS : UNITS).format(share)} %`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' },
});
const DAY = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'short' });
const ZONE = new Intl.DateTimeFormat('en', { timeZoneName: 'short', timeZone: CLOCK.resolvedOptions().timeZone });

/** The zone of all times. */
export const zone = ZONE.formatToParts(0).find(({ type }) => type === 'timeZoneName')!.value;

/** A time in Unix seconds; with its day if it is not today. */
export function clock(seconds: number): string {
  const [day, today] = [DAY.format(seconds * 1000), DAY.format(Date.now())];
  return `${day === today ? '' : `${day} `}${CLOCK.format(seconds * 1000)}`;
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
  if (blockFor) parts.push(`blocks for ${blockText(blockFor)}`);
  if (active) parts.push(`active ${activeText(active)}${activity ? activityText(activity) : ''}`);
  return parts.join(', ');
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
