import { CALENDAR_UNITS, type CalendarUnit, CalendarWindows } from '../../src/rules/calendar';
import fc from '../support/data/properties';

function secondsOf(time: string): number {
  return Date.parse(time) / 1000;
}

function shown(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(':00.000Z', '').replace('T', ' ');
}

describe('the window of a calendar', () => {
  // Clock changes that leave out or repeat 00:00, or have minutes and seconds, or a whole day; months of all lengths.
  it.each<[unit: CalendarUnit, zone: string, startsOn: number, at: string, start: string, end: string]>([
    ['DAY', 'UTC', 1, '2026-04-24T12:00Z', '2026-04-24 00:00', '2026-04-25 00:00'],
    ['DAY', 'Europe/Berlin', 1, '2026-03-29T12:00Z', '2026-03-28 23:00', '2026-03-29 22:00'],
    ['DAY', 'Europe/Berlin', 1, '2026-10-25T12:00Z', '2026-10-24 22:00', '2026-10-25 23:00'],
    ['DAY', 'Africa/Cairo', 1, '2026-04-24T12:00Z', '2026-04-23 22:00', '2026-04-24 21:00'],
    ['DAY', 'America/Havana', 1, '2026-03-08T12:00Z', '2026-03-08 05:00', '2026-03-09 04:00'],
    ['DAY', 'America/Havana', 1, '2026-11-01T05:30Z', '2026-11-01 04:00', '2026-11-02 05:00'],
    ['DAY', 'America/St_Johns', 1, '2010-11-07T02:45Z', '2010-11-07 02:30', '2010-11-08 03:30'],
    ['DAY', 'Australia/Lord_Howe', 1, '2026-04-05T00:00Z', '2026-04-04 13:00', '2026-04-05 13:30'],
    ['DAY', 'Africa/Monrovia', 1, '1972-01-07T12:00Z', '1972-01-07 00:44:30.000Z', '1972-01-08 00:00'],
    ['DAY', 'Pacific/Apia', 1, '2011-12-30T09:59Z', '2011-12-29 10:00', '2011-12-30 10:00'],
    ['DAY', 'Pacific/Apia', 1, '2011-12-30T10:00Z', '2011-12-30 10:00', '2011-12-31 10:00'],
    ['WEEK', 'Pacific/Apia', 1, '2011-12-28T00:00Z', '2011-12-26 10:00', '2012-01-01 10:00'],
    ['WEEK', 'UTC', 1, '2026-11-26T00:00Z', '2026-11-23 00:00', '2026-11-30 00:00'],
    ['WEEK', 'UTC', 7, '2026-11-26T00:00Z', '2026-11-22 00:00', '2026-11-29 00:00'],
    ['MONTH', 'Europe/Berlin', 15, '2026-03-14T22:59Z', '2026-02-14 23:00', '2026-03-14 23:00'],
    ['MONTH', 'Europe/Berlin', 31, '2026-02-28T12:00Z', '2026-02-27 23:00', '2026-03-30 22:00'],
    ['MONTH', 'UTC', 31, '2026-01-30T12:00Z', '2025-12-31 00:00', '2026-01-31 00:00'],
    ['MONTH', 'UTC', 30, '2028-02-29T00:00Z', '2028-02-29 00:00', '2028-03-30 00:00'],
    ['YEAR', 'Asia/Kolkata', 1, '2026-03-15T12:00Z', '2025-12-31 18:30', '2026-12-31 18:30'],
  ])('for a %s in %s from day %i at %s is from %s to %s', (unit, timeZone, startsOn, at, start, end) => {
    const window = new CalendarWindows(unit, { timeZone, startsOn }).at(secondsOf(at));
    expect([shown(window.start), shown(window.end)]).toEqual([start, end]);
  });

  it('contains its time, and the windows before and after it leave no gap, in every zone', () => {
    const zone = fc.constantFrom('UTC', ...Intl.supportedValuesOf('timeZone'));
    const unit = fc.constantFrom(...CALENDAR_UNITS);
    const time = fc.integer({ min: secondsOf('1970-01-02T00:00Z'), max: secondsOf('2040-01-01T00:00Z') });
    fc.assert(
      fc.property(zone, unit, fc.integer({ min: 1, max: 31 }), time, (timeZone, each, day, now) => {
        const startsOn = each === 'MONTH' ? day : each === 'WEEK' ? 1 + (day % 7) : 1;
        function windowAt(seconds: number) {
          const { start, end } = new CalendarWindows(each, { timeZone, startsOn }).at(seconds);
          return { start, end };
        }
        const window = windowAt(now);
        expect(window.start).toBeLessThanOrEqual(now);
        expect(window.end).toBeGreaterThan(now);
        expect([windowAt(window.start), windowAt(window.end - 1)]).toEqual([window, window]);
        expect([windowAt(window.start - 1).end, windowAt(window.end).start]).toEqual([window.start, window.end]);
        const moved = new CalendarWindows(each, { timeZone, startsOn });
        expect([moved.at(window.end).start, moved.at(now).end]).toEqual([window.end, window.end]);
      }),
      { numRuns: 300 },
    );
  });
});
