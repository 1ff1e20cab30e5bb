import fc from 'fast-check';
import { explainMatch } from '../../src/rules/explain';
import { matchRule } from '../../src/rules/ruleset';
import { entries } from '../support/data/requests';
import { limit, type RuleSketch, rulesetOf } from '../support/data/rules';

const RULES: readonly RuleSketch[] = [
  { key: 'user', value: 'anna', rateLimit: limit(1, 'DAY') },
  { key: 'user', value: 'bert' },
  { key: 'user', value: 'b*', rateLimit: limit(2, 'DAY') },
  { key: 'user', value: '*t', rateLimit: limit(3, 'DAY') },
  { key: 'user', rateLimit: limit(4, 'DAY'), descriptors: [{ key: 'path', rateLimit: limit(5, 'DAY') }] },
  { key: 'group', descriptors: [{ key: 'path', value: '/a' }] },
];
const ruleset = rulesetOf('shop', ...RULES);

/** A short form of an explanation: a line for each level, and the outcome. */
function explain(descriptor: string, domain = 'shop'): readonly string[] {
  const { levels, outcome, rule } = explainMatch(ruleset, { domain, entries: entries(descriptor) });
  const lines = levels.map(({ candidates, otherValues, keys }) =>
    [
      ...candidates.map(({ rule: candidate, outcome: how }) => `${candidate.value || '(none)'}: ${how}`),
      ...(otherValues > 0 ? [`${otherValues} others`] : []),
      ...(keys.length > 0 ? [`keys ${keys.join(' ')}`] : []),
    ].join(', '),
  );
  return [...lines, `${outcome} ${rule?.limit?.requestsPerUnit ?? '-'}`];
}

describe('the explanation of a descriptor', () => {
  it.each([
    [
      'an exact value',
      'user=anna',
      ['anna: chosen, b*: not tried, *t: not tried, (none): not tried, 1 others', 'limit 1'],
    ],
    [
      'the first wildcard that matches',
      'user=bt',
      ['b*: chosen, *t: not tried, (none): not tried, 2 others', 'limit 2'],
    ],
    [
      'a wildcard after one that does not match',
      'user=kurt',
      ['b*: passed over, *t: chosen, (none): not tried, 2 others', 'limit 3'],
    ],
    ['the rule without value', 'user=carl', ['b*: passed over, *t: passed over, (none): chosen, 2 others', 'limit 4']],
    ["a wildcard's own text", 'user=b*', ['b*: chosen, *t: not tried, (none): not tried, 2 others', 'limit 2']],
    [
      'a whitelisted value',
      'user=bert',
      ['bert: chosen, b*: not tried, *t: not tried, (none): not tried, 1 others', 'no limit -'],
    ],
    ['a key that no rule has', 'User=anna', ['keys user group', 'no match -']],
    ['a value that no rule has', 'group=x,path=/b', ['(none): chosen', '1 others', 'no match -']],
    ['a placeholder', 'group=x', ['(none): chosen', 'no limit -']],
    [
      'two levels',
      'user=c,path=/',
      ['b*: passed over, *t: passed over, (none): chosen, 2 others', '(none): chosen', 'limit 5'],
    ],
    ['entries below the last level', 'group=x,path=/a,deep=1', ['(none): chosen', '/a: chosen', 'too deep -']],
    ['no entries', '', ['no entries -']],
  ])('shows %s: %s', (_, descriptor, expected) => {
    expect(explain(descriptor)).toEqual(expected);
  });

  it('shows a domain without a rule file', () => {
    expect(explain('user=anna', 'forum')).toEqual(['unknown domain -']);
  });

  it('ends at the rule that a decision matches', () => {
    const key = fc.constantFrom('user', 'path', 'group', 'x');
    const value = fc.constantFrom('', 'anna', 'bert', 'bt', 'b*', '*t', '/a', 'kurt');
    const domain = ruleset.domain('shop');
    fc.assert(
      fc.property(fc.array(fc.record({ key, value }), { maxLength: 3 }), (descriptor) => {
        const { outcome, rule } = explainMatch(ruleset, { domain: 'shop', entries: descriptor });
        const met = domain && matchRule(domain, descriptor);
        expect(outcome === 'limit' || outcome === 'no limit' ? rule : undefined).toBe(met);
        expect(outcome === 'limit').toBe(met?.limit !== undefined);
      }),
    );
  });
});
