import { LoadRetries } from '../../../../src/sources/rule-files/loading/load-retries';

/** The scans, counted from the last attempt, at which the next attempts are due, each of which fails. */
function attempts(retries: LoadRetries, count: number): readonly number[] {
  return Array.from({ length: count }, () => {
    retries.failed('a');
    let scans = 1;
    while (!retries.isDue('a')) scans += 1;
    return scans;
  });
}

describe('LoadRetries', () => {
  it('waits for twice as many scans after each consecutive failure, at most for 64', () => {
    expect(attempts(new LoadRetries(), 9)).toEqual([1, 2, 4, 8, 16, 32, 64, 64, 64]);
  });

  it('does not wait with other contents', () => {
    const retries = new LoadRetries();
    attempts(retries, 3);
    expect(retries.isDue('b')).toBe(true);
    retries.failed('b');
    expect(attempts(retries, 2)).toEqual([1, 2]);
  });
});
