import { KEY_TOLERANCE, nearestName } from '../../text/nearest-name';
import { type ActiveConfig, type ActiveRange, WEEKDAYS } from '../unit';
import type { SourceRange } from './problems/source-text';
import { zoneProblem } from './read-calendar';
import { Fields, type ReadContext } from './read-fields';
import { isNull, showText, type YamlMap, type YamlNode } from './yaml/yaml-tree';

/** All ranges of a limit are computed at each change, each in 0.1 ms or less. */
const MAX_RANGES = 20;

const [FROM, TO] = [/^(?:[01]\d|2[0-3]):[0-5]\d$/, /^(?:(?:[01]\d|2[0-3]):[0-5]\d|24:00)$/];

/**
 * `active` of a limit; undefined when it has none, or an invalid one.
 *
 * @param replaced the rules that the limit replaces
 */
export function readActive(limit: Fields<'rate_limit'>, replaced: readonly string[]): ActiveConfig | undefined {
  const maps = limit.maps('active');
  if (maps.length === 0) return undefined;
  const { context } = limit;
  const key = limit.keyOf('active');
  if (replaced.length > 0) {
    const message = 'a limit with `active` hours cannot have `replaces`';
    context.report(key, { code: 'active-with-replaces', message });
  }
  const fields = new Fields(context, 'active', maps);
  const timeZone = fields.text('time_zone');
  const details = fields.isWrong('time_zone') ? undefined : zoneProblem(timeZone, 'active');
  if (details !== undefined) context.report(fields.get('time_zone')?.value ?? key, details);
  const ranges = fields.maps('ranges');
  if (!fields.isWrong('ranges') && (ranges.length === 0 || ranges.length > MAX_RANGES)) {
    const few = '`active` has no ranges';
    invalid(context, fields.get('ranges')?.value ?? key, [
      ranges.length === 0 ? few : `\`active\` has more than ${MAX_RANGES} ranges`,
      'Write ranges: [{ days: [monday, friday], from: "08:00", to: "18:00" }].',
    ]);
  }
  const read = ranges.slice(0, MAX_RANGES).map((range) => readRange(context, range));
  const valid = read.filter((range) => range !== undefined);
  return details === undefined && valid.length > 0 ? { timeZone, ranges: valid } : undefined;
}

function invalid(context: ReadContext, range: SourceRange, [message, advice]: readonly [string, string]): undefined {
  context.report(range, { code: 'invalid-active', message, advice });
}

function readRange(context: ReadContext, map: YamlMap): ActiveRange | undefined {
  const fields = new Fields(context, 'active range', [map]);
  const days = readDays(fields);
  const from = fields.text('from') || '00:00';
  const to = fields.text('to') || '24:00';
  for (const [name, text, pattern] of [
    ['from', from, FROM],
    ['to', to, TO],
  ] as const) {
    if (fields.isWrong(name)) return undefined;
    if (pattern.test(text)) continue;
    const last = name === 'to' ? '24:00' : '23:59';
    return invalid(context, fields.get(name)!.value, [
      `\`${name}\` is '${showText(text)}', which is no time of a day`,
      `Write hours and minutes in quotes, from "00:00" to "${last}".`,
    ]);
  }
  if (from === to) {
    return invalid(context, fields.get('to')?.value ?? map, [
      `the range ends when it begins, at ${from}`,
      'Write from: "00:00" and to: "24:00" for a whole day.',
    ]);
  }
  return days === undefined ? undefined : { days, from, to };
}

/** In the order of the week; all, if none are given. */
function readDays(fields: Fields<'active range'>): readonly string[] | undefined {
  const list = fields.given('days');
  if (fields.isWrong('days')) return undefined;
  if (list?.kind !== 'list') return WEEKDAYS;
  const wrong = list.items.find((item) => !WEEKDAYS.includes(nameOf(item)));
  if (wrong === undefined && list.items.length > 0) {
    const named = new Set(list.items.map(nameOf));
    return WEEKDAYS.filter((day) => named.has(day));
  }
  const text = wrong === undefined ? '' : nameOf(wrong);
  const nearest = nearestName(text, WEEKDAYS, KEY_TOLERANCE);
  return invalid(fields.context, wrong ?? list, [
    wrong === undefined ? '`days` has no days' : `'${showText(text)}' is no day of a week`,
    nearest === undefined ? `The days are ${WEEKDAYS.join(', ')}.` : `Did you mean ${nearest}?`,
  ]);
}

function nameOf(item: YamlNode): string {
  return item.kind === 'scalar' && !isNull(item) ? item.text.toLowerCase() : '';
}
