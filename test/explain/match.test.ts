import { followMatch } from '../../src/explain/match';
import { matchTrace } from '../../src/explain/match-trace';
import { nearestRule } from '../../src/explain/nearest-rule';
import { matchRule } from '../../src/rules/ruleset';
import fc from '../support/data/properties';
import { descriptor, entries } from '../support/data/requests';
import { type RuleSketch, limit, rulesetOf } from '../support/data/rules';

/** A rule that is identified by the number of its limit. */
function rule(number: number, key: string, value = '', ...descriptors: RuleSketch[]): RuleSketch {
  return { key, value, rateLimit: limit(number, 'MINUTE'), descriptors };
}

describe('the explanation of a descriptor', () => {
  const ruleset = rulesetOf(
    'shop',
    rule(1, 'user', 'anna'),
    { key: 'user', value: 'bert' },
    rule(2, 'user', 'b*'),
    rule(3, 'user', '*t'),
    rule(4, 'user', '', rule(5, 'path')),
    { key: 'group', descriptors: [{ key: 'path', value: '/a' }] },
  );

  /** A short form of an explanation: a line for each level, and the outcome. */
  function explain(text: string, domain = 'shop', rules = ruleset): readonly string[] {
    const { steps, outcome } = matchTrace(rules, { domain })(descriptor(text));
    const lines = steps.map(({ candidates, otherValues, omitted, keys }) =>
      [
        ...candidates.map(({ rule: { value }, outcome: how }) => `${value || '-'} ${how}`),
        ...(otherValues > 0 ? [`${otherValues} others`] : []),
        ...(omitted > 0 ? [`${omitted} omitted`] : []),
        ...(keys.length > 0 ? [`keys ${keys.join(' ')}`] : []),
      ].join(', '),
    );
    const { rule: last } = followMatch(rules, { domain, entries: entries(text) });
    return [...lines, `${outcome} ${last?.limit?.requestsPerUnit ?? '-'}`];
  }

  it.each([
    ['user=anna', ['anna chosen, b* not tried, *t not tried, - not tried, 1 others', 'limit 1']],
    ['user=kurt', ['b* passed over, *t chosen, - not tried, 2 others', 'limit 3']],
    ['group=x', ['- chosen', 'no limit -']],
    ['User=anna', ['keys user group', 'no match -']],
    ['group=x,path=/b', ['- chosen', '1 others', 'no match -']],
    ['user=c,path=/', ['b* passed over, *t passed over, - chosen, 2 others', '- chosen', 'limit 5']],
    ['group=x,path=/a,deep=1', ['- chosen', '/a chosen', 'too deep -']],
    ['', ['no entries -']],
  ])('shows the search for %s', (text, expected) => {
    expect(explain(text)).toEqual(expected);
  });

  it('lists the network that matches and the regular expressions, and counts other values and networks', () => {
    const others = rulesetOf(
      'shop',
      { key: 'ip', valueRegex: '9$' },
      { key: 'ip', valueCidr: '10.0.0.0/8' },
      { key: 'ip', valueCidr: '10.1.0.0/16' },
      { key: 'ip', valueIn: ['10.1.0.1', '10.1.0.2'] },
      { key: 'ip', value: '1*' },
    );
    function shownFor(value: string) {
      const { steps } = matchTrace(others, { domain: 'shop' })(descriptor(`ip=${value}`));
      const { candidates, otherValues, omitted } = steps[0]!;
      const each = candidates.map(({ rule: { value: text }, outcome }) => `${text} ${outcome}`);
      return [...each, `${otherValues} others`, `${omitted} omitted`].join(', ');
    }
    const after = '1* not tried, 9$ not tried';
    expect(shownFor('10.1.0.9')).toBe(`10.1.0.0/16 chosen, ${after}, 2 others, 0 omitted`);
    expect(shownFor('10.1.0.2')).toBe(`10.1.0.1,10.1.0.2 chosen, 10.1.0.0/16 not tried, ${after}, 1 others, 0 omitted`);
    expect(shownFor('9.9.9.9')).toBe('1* passed over, 9$ chosen, 3 others, 0 omitted');
  });

  it('shows a domain without a rule file, and lists at most 20 candidates, besides the chosen one, or 20 keys', () => {
    expect(explain('user=anna', 'forum')).toEqual(['unknown domain -']);
    const keys = Array.from({ length: 25 }, (_, index) => rule(0, `key${index}`));
    const wildcards = keys.map(({ key }) => rule(0, 'user', `${key}*`));
    const many = rulesetOf('shop', ...wildcards, rule(7, 'user', '*t'), rule(8, 'user', 'x'), ...keys);
    const passed = wildcards.slice(0, 20).map(({ value }) => `${value} passed over`);
    expect(explain('user=kurt', 'shop', many)).toEqual([
      `${passed.join(', ')}, *t chosen, 1 others, 5 omitted`,
      'limit 7',
    ]);
    const listed = keys.slice(0, 19).map(({ key }) => key);
    expect(explain('User=anna', 'shop', many)[0]).toBe(`keys user ${listed.join(' ')}`);
  });

  it('ends at the rule that a decision matches', () => {
    const key = fc.constantFrom('user', 'path', 'group', 'x');
    const value = fc.constantFrom('', 'anna', 'bert', 'bt', 'b*', '*t', '/a', 'kurt');
    fc.assert(
      fc.property(fc.array(fc.record({ key, value }), { maxLength: 3 }), (asked) => {
        const { outcome, rule: last } = followMatch(ruleset, { domain: 'shop', entries: asked });
        const matched = matchRule(ruleset.domains.get('shop')!, asked);
        expect(outcome === 'limit' || outcome === 'no limit' ? last : undefined).toBe(matched);
        expect(outcome === 'limit').toBe(matched?.limit !== undefined);
      }),
    );
  });
});

describe('the rule that a descriptor nearly matches', () => {
  const group: RuleSketch = { key: 'group', descriptors: [{ key: 'plan' }] };
  const ruleset = rulesetOf('shop', { key: 'user', value: 'bert', descriptors: [{ key: 'path', value: '/a' }] }, group);
  function nearest(text: string, of = ruleset, domain = 'shop') {
    const asked = { domain, entries: entries(text) };
    return nearestRule(of, asked, followMatch(of, asked));
  }

  it('is one that differs in a value, a key, the order or the number of entries', () => {
    const texts = ['user=bert,path=/b', 'usr=bert', 'x=1,group=2', 'group=x', 'group=x,plan=1,y=1', 'something=else'];
    expect(texts.map((text) => nearest(text)?.difference)).toEqual([
      "entry 2 has the value '/b', but the rule '/a'",
      "entry 1 has the key 'usr', but the rule 'user'",
      "entry 1 has the key 'x', but the rule 'group', which is that of entry 2",
      "the descriptor has 1 entry; this rule, nested in 'group', needs another one with the key 'plan'",
      'the descriptor has 3 entries, but no rules are nested in this one, which matches the first 2',
      undefined,
    ]);
    const list = { key: 'tier', valueIn: ['gold', 'silver'] };
    const lists = rulesetOf('shop', list, { key: 'tier', valueCidr: '10.0.0.0/8' });
    expect(nearest('tier=gol', lists)?.difference).toBe("entry 1 has the value 'gol', but the rule 'gold,silver'");
  });

  it('is the one that would match, or has the nearest value, when a key is another one or out of order', () => {
    function named(value: string): RuleSketch {
      return { key: 'sender', value };
    }
    const rules = [named('news'), { key: 'sender' }, { key: 'SENDER' }, named('bert*'), named('newsletter')];
    const senders = rulesetOf('mail', ...rules);
    const found = ['Sender=anna', 'Sender=newsletter', 'Sender=bertram', 'SENDERs=anna', 'x=1,sender=newsletter'];
    function nearestOf(text: string, rulesOfDomain = senders) {
      const near = nearest(text, rulesOfDomain, 'mail')?.rule;
      return `${near?.key}=${near?.value}`;
    }
    expect(found.map((text) => nearestOf(text))).toEqual([
      ...['sender=', 'sender=newsletter', 'sender=bert*', 'SENDER=', 'sender=newsletter'],
    ]);
    const only = rulesetOf('mail', named('gold'), named('silver'), named('bronze'));
    const values = ['silvester', 'brown', 'x'].map((value) => nearestOf(`Sender=${value}`, only));
    expect(values).toEqual(['sender=silver', 'sender=bronze', 'sender=gold']);
  });

  it('is found in bounded work, however many wildcards the rules of the key have', () => {
    const wildcards = Array.from({ length: 20_000 }, (_, index) => `*${index}*a*b*c*${index}`);
    const many = rulesetOf('shop', ...wildcards.map((value) => ({ key: 'user', value })), { key: 'user' });
    expect(nearest('User=anna', many)?.rule?.key).toBe('user');
  });

  it('is none in another domain, of which the nearest is named', () => {
    const difference = "the rules have the domain 'shop', not 'Shop'";
    const found = ['Shop', 'forum'].map((domain) => nearest('user=bert', ruleset, domain));
    expect(found).toEqual([{ rule: undefined, difference }, undefined]);
  });

  it('is looked for among the first texts, up to 2,000 characters with one more for each', () => {
    const values = Array.from({ length: 100 }, (_, index) => `${index} is far away`.padEnd(19, '-'));
    const many = rulesetOf('shop', ...[...values, 'anna', 'bert'].map((value) => ({ key: 'user', value })));
    const found = ['user=ana', 'user=bertt'].map((text) => nearest(text, many)?.rule?.value);
    expect(found).toEqual(['anna', 'anna']);
  });
});
