import { useState } from 'preact/hooks';
import type { RuleReference } from '../src/explain/explanation';
import type { LimitInWords } from '../src/explain/text';
import type { ListedRule } from '../src/operators/answers';
import { activeText, activityText, calendarText, windowText } from '../src/rules/unit';
import { shortened } from '../src/text/excerpt';
import { visibleLine } from '../src/text/visible';

/**
 * A text of a caller or of a file: never more than text, and in its own direction. What cannot be seen, or would turn
 * what follows, is shown by its code.
 */
export function Text({ text }: { readonly text: string }) {
  return <bdi>{visibleLine(shortened(text))}</bdi>;
}

/** Characters of a text that has room everywhere, and of the end of a longer one, which stays visible. */
const [FITS, END] = [12, 8];

/**
 * A text in one line, shortened in its middle where there is no room. It is whole when it is pointed at, and tapped.
 */
export function Short({ text, href }: { readonly text: string; readonly href?: string }) {
  const [isOpen, setOpen] = useState(false);
  const whole = visibleLine(shortened(text));
  const characters = Array.from(whole);
  const end = characters.length > 2 * END ? characters.slice(-END).join('') : '';
  const content = isOpen ? (
    <bdi>{whole}</bdi>
  ) : (
    <>
      <bdi class="start">{whole.slice(0, whole.length - end.length)}</bdi>
      <bdi>{end}</bdi>
    </>
  );
  if (href !== undefined) {
    return (
      <a class="short" href={href} title={whole} aria-label={whole}>
        {content}
      </a>
    );
  }
  if (characters.length <= FITS) return <Text text={text} />;
  return (
    <button
      type="button"
      class="short"
      title={whole}
      aria-label={whole}
      aria-expanded={isOpen}
      onClick={() => setOpen(!isOpen)}
    >
      {content}
    </button>
  );
}

const UNITS = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const HUNDREDTHS = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2, minimumFractionDigits: 2 });
const TENTHS = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1, minimumFractionDigits: 1 });

export function count(value: number): string {
  return UNITS.format(value);
}

/** A rate or a duration. */
export function measure(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  return (value >= 100 || value === 0 ? UNITS : value >= 1 ? TENTHS : HUNDREDTHS).format(value);
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});

/** A time of the present day, in Unix seconds; without seconds where there are none. */
export function clock(seconds: number): string {
  return CLOCK.format(seconds * 1000).replace(/:00$/, '');
}

/** A time of the API in the zone of the reader, and in UTC when it is pointed at. */
export function Time({ iso }: { readonly iso: string }) {
  const utc = `${iso.slice(0, 19).replace('T', ' ')} UTC`;
  return (
    <time dateTime={iso} title={utc}>
      {new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })}
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
}: LimitInWords): string {
  const multiplier = unitMultiplier ?? 1;
  const window = windowText(unit ?? '', multiplier);
  const each = multiplier === 1 ? (window === 'hour' ? 'an' : 'a') : 'in';
  const zone = calendar === null ? '' : ` ${calendarText(unit ?? '', calendar)}`;
  const rate = `${count(requestsPerUnit ?? 0)} ${each} ${window}${zone}`;
  const parts = algorithm === null ? [rate] : [algorithm.replace('_', ' '), rate];
  if (burst !== null) parts.push(`burst ${count(burst)}`);
  if (postpaid) parts.push('postpaid');
  if (typeof lease === 'boolean') parts.push(lease ? 'leased' : 'not leased');
  if (active !== null) parts.push(`active ${activeText(active)}${activity ? activityText(activity) : ''}`);
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
