import { map } from 'rxjs';
import { expiryWarnings } from '../../src/sources/certificates';
import { marbles } from '../support/marbles';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const DAILY = `a ${DAY - 1}ms b ${DAY - 1}ms c ${DAY - 1}ms d`;

describe('the warnings before a certificate expires', () => {
  // Virtual time starts at 0; all times are in days.
  it.each<[when: string, from: number, until: number, expected: string, left: readonly number[]]>([
    ['begin immediately within the last 30 days, and are repeated once a day', -80, 20, DAILY, [20, 19, 18, 17]],
    [
      'begin 30 days before, within an hour',
      -300,
      31 + 1 / 48,
      `${DAY + HOUR}ms a ${DAY - 1}ms b`,
      [30 - 1 / 48, 29 - 1 / 48],
    ],
    ['begin when a third of a validity of less than 90 days is left', 0, 3, `${2 * DAY}ms a ${DAY - 1}ms b`, [1, 0]],
    ['are not emitted while there is time', 0, 90, '-', []],
    ['continue after the expiry', -99, -1, DAILY, [-1, -2, -3, -4]],
  ])('%s', (_, from, until, expected, left) => {
    marbles(({ expectObservable }, scheduler) => {
      const warnings$ = expiryWarnings({ from: from * DAY, until: until * DAY }, scheduler);
      const days = Object.fromEntries(left.map((number, index) => ['abcd'.charAt(index), number]));
      const unsubscribed = `${3 * DAY + HOUR}ms !`;
      expectObservable(warnings$.pipe(map((time) => time / DAY)), unsubscribed).toBe(expected, days);
    });
  });
});
