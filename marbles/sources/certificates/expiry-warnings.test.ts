import { map } from 'rxjs';
import { type Validity, expiryWarnings } from '../../../src/sources/certificates/expiry-warnings';
import { marbles } from '../../support/marbles';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** What is emitted in virtual time, which starts at 0; `a` to `d` are the days that are left. */
function expectWarnings(validity: Validity, expected: string, days: Readonly<Record<string, number>>): void {
  marbles(({ expectObservable }, scheduler) => {
    const unsubscribed = `${3 * DAY + HOUR}ms !`;
    const warnings$ = expiryWarnings(validity, scheduler).pipe(map((left) => left / DAY));
    expectObservable(warnings$, unsubscribed).toBe(expected, days);
  });
}

describe('the warnings before a certificate expires', () => {
  it('begin immediately within the last 30 days, and are repeated once a day', () => {
    expectWarnings({ from: -80 * DAY, until: 20 * DAY }, `a ${DAY - 1}ms b ${DAY - 1}ms c ${DAY - 1}ms d`, {
      a: 20,
      b: 19,
      c: 18,
      d: 17,
    });
  });

  it('begin 30 days before, within an hour', () => {
    expectWarnings({ from: -300 * DAY, until: 31 * DAY + HOUR / 2 }, `${DAY + HOUR}ms a ${DAY - 1}ms b`, {
      a: 30 - 1 / 48,
      b: 29 - 1 / 48,
    });
  });

  it('begin when a third of the validity is left for a certificate that is valid for less than 90 days', () => {
    expectWarnings({ from: 0, until: 3 * DAY }, `${2 * DAY}ms a ${DAY - 1}ms b`, { a: 1, b: 0 });
  });

  it('are not emitted while there is time', () => {
    expectWarnings({ from: 0, until: 90 * DAY }, '-', {});
  });

  it('continue after the expiry', () => {
    expectWarnings({ from: -99 * DAY, until: -1 * DAY }, `a ${DAY - 1}ms b ${DAY - 1}ms c ${DAY - 1}ms d`, {
      a: -1,
      b: -2,
      c: -3,
      d: -4,
    });
  });
});
