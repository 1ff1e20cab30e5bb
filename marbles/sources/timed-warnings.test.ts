import { map } from 'rxjs';
import { validityWarnings } from '../../src/sources/certificates';
import { marbles } from '../support/marbles';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const DAILY = `a ${DAY - 1}ms b ${DAY - 1}ms c ${DAY - 1}ms d`;

/** In days: virtual time starts at 0. */
type Validity = readonly [from: number, until: number];

/** Expects these warnings within three days, when certificates with these validities are used one after the other. */
function expectWarnings(used: string, validities: readonly Validity[], expected: string, texts: readonly string[]) {
  marbles(({ cold, expectObservable }, scheduler) => {
    const validity$ = cold(used).pipe(
      map((index) => validities[Number(index)] ?? [0, 0]),
      map(([from, until]) => ({ from: from * DAY, until: until * DAY })),
    );
    const warnings$ = validityWarnings('gRPC', validity$, scheduler).pipe(
      map(([message]) => message.replace('the certificate of the gRPC listener ', '')),
    );
    const named = Object.fromEntries(texts.map((text, index) => ['abcd'.charAt(index), text]));
    expectObservable(warnings$, `${3 * DAY + HOUR}ms !`).toBe(expected, named);
  });
}

describe('the warnings about the validity of a certificate', () => {
  it.each<[when: string, from: number, until: number, expected: string, texts: readonly string[]]>([
    [
      'begin immediately within the last 30 days, and are repeated once a day',
      -80,
      20,
      DAILY,
      [20, 19, 18, 17].map((days) => `expires in ${days} days`),
    ],
    [
      'begin 30 days before, within an hour',
      -300,
      31 + 1 / 48,
      `${DAY + HOUR}ms a ${DAY - 1}ms b`,
      ['expires in 29 days', 'expires in 28 days'],
    ],
    [
      'begin when a third of a validity of less than 90 days is left',
      0,
      3,
      `${2 * DAY}ms a ${DAY - 1}ms b`,
      ['expires in 1 day', 'has expired'],
    ],
    ['are none while there is time', 0, 90, '-', []],
    ['continue after the expiry', -99, -1, DAILY, Array<string>(4).fill('has expired')],
    ['report one that is not valid yet', 1, 90, 'a', ['is not valid yet']],
  ])('%s', (_, from, until, expected, texts) => {
    expectWarnings('0', [[from, until]], expected, texts);
  });

  it('report the replacement of a certificate about which there was one, and stop', () => {
    const used = `0 ${DAY - 1}ms 1 ${DAY - 1}ms 1`;
    const validities: readonly Validity[] = [
      [-80, 20],
      [0, 90],
    ];
    expectWarnings(used, validities, `a ${DAY - 1}ms b`, ['expires in 20 days', 'was replaced']);
  });
});
