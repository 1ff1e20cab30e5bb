import type { Offender } from '../../../../src/limiter/offenders/offender';
import { offenderSeries } from '../../../../src/sinks/statistics/exposition/offender-series';

function offender(descriptor: string, limited: number, more: Partial<Offender> = {}): Offender {
  return { domain: 'shop', rule: 'shop.user', descriptor, isShadow: false, limited, error: 0, ...more };
}

function samplesOf(offenders: readonly Offender[], extra = {}): readonly string[] {
  return offenderSeries(offenders, extra)
    .trimEnd()
    .split('\n')
    .filter((line) => !line.startsWith('#'));
}

describe('the series of offenders', () => {
  it('have the texts as labels, next to the extra ones, which do not replace them', () => {
    expect(
      samplesOf([offender('user=anna', 7), offender('user=b', 2, { isShadow: true })], { zone: 'a', rule: 'x' }),
    ).toEqual([
      'ratelimit_offender_limited{descriptor="user=anna",domain="shop",rule="shop.user",shadow_mode="false",zone="a"} 7',
      'ratelimit_offender_limited{descriptor="user=b",domain="shop",rule="shop.user",shadow_mode="true",zone="a"} 2',
    ]);
  });

  it('escape what a caller sends, so that each is one line', () => {
    const [sample, ...others] = samplesOf([offender('user=a"} 1\nratelimit_forged{x="\\', 1)]);
    expect(others).toEqual([]);
    expect(sample).toContain(String.raw`descriptor="user=a\"} 1\nratelimit_forged{x=\"\\"`);
  });

  it('are one where the labels are the same, with the sum', () => {
    expect(samplesOf([offender('user=x…', 3), offender('user=x…', 2)])).toHaveLength(1);
    expect(samplesOf([offender('user=x…', 3), offender('user=x…', 2)])[0]).toMatch(/ 5$/);
  });

  it('have a type and a description also when there are none', () => {
    expect(offenderSeries([], {})).toMatch(
      /^# HELP ratelimit_offender_limited .+\n# TYPE ratelimit_offender_limited gauge\n$/,
    );
  });
});
