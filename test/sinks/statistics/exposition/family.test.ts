import { NumberSeries } from '../../../../src/sinks/statistics/exposition/family';

describe('NumberSeries', () => {
  it('is the sum of all statistics that are mapped to it, each with its scale', () => {
    const series = new NumberSeries('hits', 'domain="shop"');
    series.readFrom(() => 3, 1);
    series.readFrom(() => 4, 0.5);
    expect(series.write()).toBe('hits{domain="shop"} 5\n');
  });

  // With work per statistic that grows with their number, this takes minutes.
  it('maps half a million statistics to one series', () => {
    const series = new NumberSeries('hits', '');
    for (let index = 0; index < 500_000; index += 1) series.readFrom(() => 2, 1);
    expect(series.write()).toBe('hits 1000000\n');
  });
});
