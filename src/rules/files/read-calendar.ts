import { KEY_TOLERANCE, nearestName } from '../../text/nearest-name';
import { CALENDAR_UNITS } from '../calendar';
import { type CalendarConfig, type UnitName, WEEKDAYS } from '../unit';
import type { ProblemDetails } from './problems/problem';
import { Fields } from './read-fields';
import { showText } from './yaml/yaml-tree';

/**
 * `calendar` of a limit; undefined when it has none, or an invalid one. @param unit undefined: the limit has no valid
 * one
 */
export function readCalendar(limit: Fields<'rate_limit'>, unit: UnitName | undefined): CalendarConfig | undefined {
  const maps = limit.maps('calendar');
  if (maps.length === 0) return undefined;
  const { context } = limit;
  function report(range: Parameters<typeof context.report>[0], details: ProblemDetails): undefined {
    context.report(range, details);
  }
  const fields = new Fields(context, 'calendar', maps);
  const zone = fields.text('time_zone');
  const zoneAt = fields.get('time_zone')?.value ?? limit.keyOf('calendar');
  const details = fields.isWrong('time_zone') ? undefined : zoneProblem(zone, 'calendar');
  if (details !== undefined) report(zoneAt, details);
  const days = fields.text('starts_on');
  const startsOn = dayOf(days, unit);
  if (unit !== undefined && !(CALENDAR_UNITS as readonly string[]).includes(unit)) {
    const message = `\`calendar\` cannot be combined with the unit \`${unit.toLowerCase()}\``;
    return report(limit.get('unit')?.value ?? limit.start, { code: 'invalid-calendar-unit', message });
  }
  for (const name of ['unit_multiplier', 'algorithm'] as const) {
    if (limit.get(name) === undefined || limit.choice('algorithm') === 'fixed_window') continue;
    const message = `\`${name}\` cannot be combined with \`calendar\``;
    return report(limit.keyOf(name), { code: 'calendar-combined', message });
  }
  if (startsOn === undefined && !fields.isWrong('starts_on') && unit !== undefined) {
    return report(fields.get('starts_on')?.value ?? fields.start, {
      code: 'invalid-starts-on',
      message: `a ${unit.toLowerCase()} cannot start on '${showText(days)}'`,
      advice: STARTS[unit] ?? 'Remove starts_on: only weeks and months can start on another day.',
    });
  }
  return details === undefined && startsOn !== undefined ? { timeZone: zone, startsOn } : undefined;
}

const STARTS: Readonly<Partial<Record<UnitName, string>>> = {
  WEEK: `The days of a week are ${WEEKDAYS.join(', ')}.`,
  MONTH: 'Write a day from 1 to 31; a shorter month starts on its last day.',
};

/** The first day of a window, as a number; undefined for a text that is none. Without a text, the first of the unit. */
function dayOf(text: string, unit: UnitName | undefined): number | undefined {
  if (text === '') return 1;
  if (unit === 'WEEK') return WEEKDAYS.indexOf(text.toLowerCase()) + 1 || undefined;
  const day = Number(text);
  return unit === 'MONTH' && /^[1-9]\d?$/.test(text) && day <= 31 ? day : undefined;
}

/** @param field the mapping that has the zone */
export function zoneProblem(zone: string, field: 'calendar' | 'active'): ProblemDetails | undefined {
  if (typeof Intl === 'undefined') {
    const message = `\`${field}\` needs the time zones of Intl, without which this Node.js was built`;
    return { code: 'no-time-zones', message };
  }
  const known = knownName(zone);
  if (known !== undefined && (zone.includes('/') || zone === 'UTC')) return undefined;
  const code = 'invalid-time-zone';
  if (known !== undefined) {
    const message = `'${showText(zone)}' is a short name, which may mean another time zone than intended`;
    return {
      code,
      message,
      advice: `Write the name of a zone, such as Europe/Berlin, or UTC; this one would be ${known}.`,
    };
  }
  const names = ['UTC', ...Intl.supportedValuesOf('timeZone')];
  const city = zone.toLowerCase().replaceAll(' ', '_');
  const near = names.find((name) => name.toLowerCase().endsWith(`/${city}`)) ?? nearestName(zone, names, KEY_TOLERANCE);
  const message = zone === '' ? `\`${field}\` has no time_zone` : `unknown time zone '${showText(zone)}'`;
  return {
    code,
    message,
    advice: near === undefined ? 'Write the name of a zone, such as Europe/Berlin, or UTC.' : `Did you mean ${near}?`,
  };
}

/** The name under which `Intl` knows a zone; undefined for an unknown one. */
function knownName(zone: string): string | undefined {
  // Later versions of Node.js know offsets, too.
  if (!/^[a-z]/i.test(zone)) return undefined;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}
