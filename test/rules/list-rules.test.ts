import { limit, linesOf, rulesetOf, unlimited } from '../support/data/rules';

/** A line as the Go service writes it; what follows is a comment. */
const LINE =
  /^(?<key>.*): unit=(?<unit>[A-Z]+) requests_per_unit=(?<n>\d+), shadow_mode: (true|false), quota_mode: (true|false)(?: # .*)?$/;

describe('listRules', () => {
  const lines = linesOf(
    rulesetOf(
      'shop',
      { key: 'user', rateLimit: limit(10, 'MINUTE'), quotaMode: true },
      { key: 'staff', rateLimit: unlimited() },
      { key: 'banned', rateLimit: limit(0, 'DAY'), shadowMode: true },
    ),
  );

  it('shows an unlimited rule as the Go service does, with a comment that tells it from a ban', () => {
    expect(lines).toEqual([
      'shop.banned: unit=DAY requests_per_unit=0, shadow_mode: true, quota_mode: false',
      'shop.staff: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false # unlimited',
      'shop.user: unit=MINUTE requests_per_unit=10, shadow_mode: false, quota_mode: true',
    ]);
  });

  it('can be read by programs that know the lines of the Go service', () => {
    expect(lines.map((line) => LINE.exec(line)?.groups?.['unit'])).toEqual(['DAY', 'UNKNOWN', 'MINUTE']);
  });
});
