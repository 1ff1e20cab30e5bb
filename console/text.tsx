import type { ComponentChildren } from 'preact';
import type { RuleReference } from '../src/explain/explanation';
import type { LimitInWords } from '../src/explain/text';
import type { ListedRule } from '../src/operators/answers';
import { activeText, activityText, calendarText, windowText } from '../src/rules/unit';
import { shortened } from '../src/text/excerpt';
import { visibleLine } from '../src/text/visible';

/**
 * A text of a caller or of a file: never more than text, and in its own direction. What cannot be seen, or would turn
 * what follows, is shown by its code. A long one wraps at its separators. What is not a text stays as it is.
 */
export function shown(content: ComponentChildren): ComponentChildren {
  if (typeof content !== 'string') return content;
  const parts = visibleLine(shortened(content)).split(/(?<=[.,/_])(?=[^.,/_])(?<!\d[.,](?=\d))/);
  return <bdi class="name">{parts.flatMap((part, index) => (index === 0 ? [part] : [<wbr key={index} />, part]))}</bdi>;
}

/** @param kind its class: `button`, `small` … */
export function Link({ href, text, kind }: { readonly href: string; readonly text: string; readonly kind?: string }) {
  return (
    <a class={kind} href={href}>
      {shown(text)}
    </a>
  );
}

/** What there is of some texts. */
export function listed(texts: readonly (string | false | null | undefined)[], separator = ', '): string {
  return texts.filter(Boolean).join(separator);
}

/** As a sentence begins; names stay as they are: `weir-1 (10.0.0.5:6070) is red`. */
export function capital(sentence: string): string {
  return /^\S+(?: \(\S+\))? is /.test(sentence) ? sentence : sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

/** With commas between thousands. Formatters of the browser take a tenth of a second to be made. */
export function count(value: number): string {
  return value.toFixed(0).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}

/** `1 hit`, `1,200 hits`. */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

const SIZES = { T: 1e12, B: 1e9, M: 1e6, K: 1e3 };

/** A rate, a duration or a total at a glance: `4,218`, `802K`. */
export function measure(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (value >= 10_000) {
    // Also 999,999 is 1M.
    const [name, size] = Object.entries(SIZES).find(([, each]) => value >= 0.9995 * each)!;
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
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined) return '–';
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
  const day = { weekday: 'short', day: 'numeric', month: 'short' } as const;
  const parts = [date.getHours(), date.getMinutes(), date.getSeconds()];
  const time = parts.map((part) => String(part).padStart(2, '0')).join(':');
  return isToday ? time : `${date.toLocaleDateString(undefined, day)} ${time}`;
}

/** A time in Unix seconds without its seconds. */
export function shortClock(seconds: number): string {
  return clock(seconds).slice(0, -3);
}

type Unit = readonly [name: string, seconds: number];
const DURATIONS: readonly Unit[] = Object.entries({ d: 86_400, h: 3_600, min: 60, s: 1 });

/** `12 s`, `3 min 25 s`, `1 h 16 min`, `5 d 2 h`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const at = DURATIONS.findIndex(([, size]) => whole >= size || size === 1);
  const [[name, size], [lowerName, lower] = ['', 1]] = DURATIONS.slice(at, at + 2) as [Unit, Unit?];
  const rest = Math.floor((whole % size) / lower);
  return `${Math.floor(whole / size)} ${name}${rest === 0 ? '' : ` ${rest} ${lowerName}`}`;
}

/** `since 03:16:05, 31 min`, without seconds when it is long ago. */
export function sinceText(seconds: number): string {
  const elapsed = Math.max(0, Date.now() / 1000 - seconds);
  return `since ${clock(seconds)}, ${duration(elapsed < 600 ? elapsed : elapsed - (elapsed % 60))}`;
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
export function limitText(limit: LimitInWords): string {
  const { unit, calendar, algorithm, burst, lease, active, activity, blockFor } = limit;
  const [requests, multiplier] = [count(limit.requestsPerUnit ?? 0), limit.unitMultiplier ?? 1];
  const each = multiplier !== 1 ? 'in' : unit === 'HOUR' ? 'an' : 'a';
  const where = calendar === null ? '' : ` ${calendarText(unit ?? '', calendar)}`;
  const isConcurrent = algorithm === 'max_concurrent';
  return listed([
    !isConcurrent && algorithm?.replace('_', ' '),
    `${requests} ${isConcurrent ? 'at a time' : `${each} ${windowText(unit ?? '', multiplier)}${where}`}`,
    burst !== null && `burst ${count(burst)}`,
    limit.postpaid && 'postpaid',
    typeof lease === 'boolean' && (lease ? 'leased' : 'not leased'),
    blockFor && `blocks for ${blockedTime(blockFor)}`,
    active && `active ${activeText(active)}${activity ? activityText(activity) : ''}`,
  ]);
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
