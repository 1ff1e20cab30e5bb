import { Schedule, areDisjoint } from '../../src/rules/schedule';
import { type ActiveConfig, WEEKDAYS } from '../../src/rules/unit';
import fc from '../support/data/properties';

const MINUTE = 60;
/** Clocks change at such times, and the hours of the test do. */
const STEP = 5 * MINUTE;
const DAY = 86_400;

function secondsOf(time: string): number {
  return Date.parse(time) / 1000;
}

function shown(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 16).replace('T', ' ');
}

/** Hours on one line: `monday+friday 08:00-18:00,22:00-06:00 Europe/Berlin`. */
function hours(text: string): ActiveConfig {
  const [, ranges = '', timeZone = ''] = /^(.*) (\S+)$/.exec(text) ?? [];
  return {
    timeZone,
    ranges: ranges.split(',').map((range) => {
      const [, days = '', from = '', to = ''] = /^(?:(\S+) )?(\S+)-(\S+)$/.exec(range) ?? [];
      return { days: days === '' ? WEEKDAYS : days.split('+'), from, to };
    }),
  };
}

/** When the hours begin and end from one time to another, found by asking once for each change. */
function changes(active: ActiveConfig, from: string, to: string): readonly string[] {
  const schedule = new Schedule(active);
  const found: string[] = [];
  let isActive = schedule.isActiveAt(secondsOf(from));
  for (let now = schedule.changesAfter(secondsOf(from)); now < secondsOf(to); now = schedule.changesAfter(now)) {
    expect(schedule.isActiveAt(now)).toBe(!isActive);
    isActive = !isActive;
    found.push(`${isActive ? 'on' : 'off'} ${shown(now)}`);
  }
  return found;
}

describe('the hours of a limit', () => {
  it.each([
    ['08:00-18:00 UTC', '2026-01-01T00:00Z', '2026-01-02T00:00Z', ['on 2026-01-01 08:00', 'off 2026-01-01 18:00']],
    ['22:00-06:00 UTC', '2026-01-01T00:00Z', '2026-01-02T00:00Z', ['off 2026-01-01 06:00', 'on 2026-01-01 22:00']],
    [
      'monday+tuesday 00:00-24:00 Europe/Berlin',
      '2026-01-01T00:00Z',
      '2026-01-08T00:00Z',
      ['on 2026-01-04 23:00', 'off 2026-01-06 23:00'],
    ],
    // The clock goes forward from 02:00 to 03:00.
    [
      '02:30-04:00 Europe/Berlin',
      '2026-03-29T00:00Z',
      '2026-03-29T12:00Z',
      ['on 2026-03-29 01:00', 'off 2026-03-29 02:00'],
    ],
    ['02:00-03:00 Europe/Berlin', '2026-03-29T00:00Z', '2026-03-29T12:00Z', []],
    // The clock goes back from 03:00 to 02:00.
    [
      '01:00-02:30 Europe/Berlin',
      '2026-10-24T12:00Z',
      '2026-10-25T12:00Z',
      ['on 2026-10-24 23:00', 'off 2026-10-25 00:30'],
    ],
    [
      '02:30-03:00 Europe/Berlin',
      '2026-10-24T12:00Z',
      '2026-10-25T12:00Z',
      ['on 2026-10-25 00:30', 'off 2026-10-25 02:00'],
    ],
    [
      'saturday 22:00-06:00 Europe/Berlin',
      '2026-10-19T00:00Z',
      '2026-10-31T00:00Z',
      ['on 2026-10-24 20:00', 'off 2026-10-25 05:00'],
    ],
    // A date that clocks left out.
    [
      '22:00-06:00 Pacific/Apia',
      '2011-12-29T12:00Z',
      '2011-12-31T09:00Z',
      ['off 2011-12-29 16:00', 'on 2011-12-30 08:00', 'off 2011-12-30 16:00', 'on 2011-12-31 08:00'],
    ],
  ])('%s from %s to %s are %j', (text, from, to, expected) => {
    expect(changes(hours(text), from, to)).toEqual(expected);
  });

  it('do not change where they are all of the week, also in ranges that touch or overlap', () => {
    for (const text of ['00:00-24:00 UTC', '00:00-12:00,12:00-24:00 UTC', '22:00-23:00,04:00-07:00,06:00-05:00 UTC']) {
      const schedule = new Schedule(hours(text));
      expect([schedule.isActiveAt(1_700_000_000), schedule.changesAfter(1_700_000_000)]).toEqual([true, Infinity]);
    }
  });

  const zone = fc.constantFrom(
    ...['UTC', 'Europe/Berlin', 'America/New_York', 'America/St_Johns', 'Australia/Lord_Howe', 'Asia/Kolkata'],
    ...['Pacific/Apia', 'Africa/Cairo', 'America/Havana', 'Asia/Kathmandu', 'Pacific/Chatham', 'Antarctica/Troll'],
  );
  const time = fc.integer({ min: 0, max: 24 * 12 - 1 }).map((step) => {
    const minute = 5 * step;
    return [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, '0')).join(':');
  });
  const range = fc
    .record({ days: fc.subarray(WEEKDAYS, { minLength: 1 }), from: time, to: time })
    .filter(({ from, to }) => from !== to);
  const anyHours = fc.record({ timeZone: zone, ranges: fc.array(range, { minLength: 1, maxLength: 3 }) });
  const anyTime = fc.integer({ min: secondsOf('2005-01-01T00:00Z'), max: secondsOf('2037-01-01T00:00Z') });

  /** The latest date and time that clocks of a zone have shown from one time to another, every five minutes. */
  function* readings(timeZone: string, from: number, to: number) {
    const format = new Intl.DateTimeFormat('en-u-ca-iso8601-nu-latn', {
      ...{ timeZone, hourCycle: 'h23', year: 'numeric', month: '2-digit', day: '2-digit' },
      ...{ hour: '2-digit', minute: '2-digit' },
    });
    let latest = 0;
    for (let at = from; at < to; at += STEP) {
      const parts = Object.fromEntries(format.formatToParts(at * 1000).map(({ type, value }) => [type, Number(value)]));
      const { year = 0, month = 0, day = 0, hour = 0, minute = 0 } = parts;
      latest = Math.max(latest, Date.UTC(year, month - 1, day, hour, minute) / 1000);
      yield { at, latest };
    }
  }

  it('are those that the clocks of the zone show, by the latest time that they have shown', () => {
    fc.assert(
      fc.property(anyHours, anyTime, (active, around) => {
        const schedule = new Schedule(active);
        const start = Math.floor(around / STEP) * STEP;
        for (const { at, latest } of readings(active.timeZone, start, start + 2 * DAY)) {
          // Clocks that go back have shown a later time up to three hours before.
          if (at < start + DAY) continue;
          const date = Math.floor(latest / DAY);
          const minute = (latest % DAY) / MINUTE;
          const isActive = active.ranges.some(({ days, from, to }) => {
            const [first, last] = [from, to].map((text) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3)));
            const [today, before] = [date, date - 1].map((each) => days.includes(WEEKDAYS[(each + 3) % 7]!));
            if (first! < last!) return today && minute >= first! && minute < last!;
            return (today && minute >= first!) || (before && minute < last!);
          });
          expect([shown(at), schedule.isActiveAt(at)]).toEqual([shown(at), isActive]);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('of day and night leave no gap and do not overlap, and change when they say, in any order of times', () => {
    fc.assert(
      fc.property(zone, time, time, fc.array(anyTime, { minLength: 1, maxLength: 20 }), (timeZone, from, to, times) => {
        fc.pre(from !== to);
        const day = new Schedule({ timeZone, ranges: [{ days: WEEKDAYS, from, to }] });
        const night = new Schedule({ timeZone, ranges: [{ days: WEEKDAYS, from: to, to: from }] });
        for (const now of times) {
          const isDay = day.isActiveAt(now);
          const end = day.changesAfter(now);
          expect([night.isActiveAt(now), night.changesAfter(now)]).toEqual([!isDay, end]);
          expect([day.isActiveAt(end - 1), day.isActiveAt(end), day.isActiveAt(now)]).toEqual([isDay, !isDay, isDay]);
        }
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['08:00-18:00 UTC', '18:00-08:00 UTC', true],
    ['08:00-18:01 UTC', '18:00-08:00 UTC', false],
    ['08:00-18:00 UTC', '18:00-08:00 Europe/Berlin', false],
    ['monday 22:00-06:00 UTC', 'tuesday 05:59-07:00 UTC', false],
    ['sunday 22:00-06:00 UTC', 'monday 06:00-07:00 UTC', true],
    ['sunday 22:00-06:00 UTC', 'monday 05:00-07:00 UTC', false],
    ['monday 00:00-24:00 UTC', 'sunday+tuesday 00:00-24:00 UTC', true],
  ])('%s and %s are apart: %s', (one, other, areApart) => {
    expect([areDisjoint(hours(one), hours(other)), areDisjoint(hours(other), hours(one))]).toEqual([
      areApart,
      areApart,
    ]);
  });
});
