import { matchRule } from '../../src/rules/ruleset';
import { plainStatisticsKey, runtimeStatisticsLevels, statisticsKey } from '../../src/rules/statistics-key';
import { entries } from '../support/data/requests';
import { limit, type RuleSketch, rulesetOf } from '../support/data/rules';

const rateLimit = limit(1, 'MINUTE');

function keyOf(rule: RuleSketch, descriptor: string): { key: string; plain: string; isRuntime: boolean } {
  const domain = rulesetOf('shop', rule).domain('shop');
  const matched = domain && matchRule(domain, entries(descriptor));
  if (matched === undefined) throw new Error(`${descriptor} matches no rule`);
  return {
    key: statisticsKey(matched, entries(descriptor)),
    plain: plainStatisticsKey(matched),
    isRuntime: runtimeStatisticsLevels(matched).length > 0,
  };
}

const D = { detailedMetric: true };
const V = { valueToMetric: true };
const S = { shareThreshold: true };

describe('the statistics key of one level', () => {
  // configured value, flags, request value, expected key, whether it contains the request value
  it.each<[value: string, flags: Partial<RuleSketch>, sent: string, key: string, isRuntime: boolean]>([
    ['', {}, 'x', 'shop.k', false],
    ['', D, 'x', 'shop.k_x', true],
    ['', D, '', 'shop.k_', true],
    ['', V, 'x', 'shop.k_x', true],
    ['', V, '', 'shop.k', true],
    ['', { ...D, ...V }, '', 'shop.k_', true],
    ['x', {}, 'x', 'shop.k_x', false],
    ['x', D, 'x', 'shop.k_x', false],
    ['x', V, 'x', 'shop.k_x', false],
    ['a*', {}, 'abc', 'shop.k_a*', false],
    ['a*', D, 'abc', 'shop.k_abc', true],
    ['a*', V, 'abc', 'shop.k_abc', true],
    ['a*', S, 'abc', 'shop.k_a*', false],
    ['a*', { ...S, ...V }, 'abc', 'shop.k_a', false],
    ['a*', { ...S, ...D }, 'abc', 'shop.k_a', false],
    ['a*c*', { ...S, ...V }, 'abcd', 'shop.k_a', false],
    ['*c', { ...S, ...V }, 'abc', 'shop.k_', false],
    ['*', D, '', 'shop.k_', true],
    ['*', V, '', 'shop.k', true],
  ])('of value %p with %o for the request value %p is %s', (value, flags, sent, key, isRuntime) => {
    expect(keyOf({ key: 'k', value, rateLimit, ...flags }, `k=${sent}`)).toMatchObject({ key, isRuntime });
  });
});

describe('the statistics key of nested levels', () => {
  function nested(outer: Partial<RuleSketch>, inner: Partial<RuleSketch>): RuleSketch {
    return {
      key: 'a',
      ...outer,
      descriptors: [{ key: 'b', rateLimit, ...inner }],
    };
  }

  it.each<[name: string, outer: Partial<RuleSketch>, inner: Partial<RuleSketch>, key: string]>([
    ['each level adds its key', {}, {}, 'shop.a.b'],
    ['explicit values are included', { value: 'x' }, { value: 'y' }, 'shop.a_x.b_y'],
    ['detailed_metric of the last rule includes the value of every level', {}, D, 'shop.a_x.b_y'],
    ['detailed_metric of an outer rule alone has no effect', D, {}, 'shop.a.b'],
    ['value_to_metric of the outer level includes its value', V, {}, 'shop.a_x.b'],
    ['value_to_metric of the inner level includes its value', {}, V, 'shop.a.b_y'],
    ['value_to_metric of both levels includes both values', V, V, 'shop.a_x.b_y'],
    ['a shared outer level keeps its pattern', { value: 'x*', ...S }, V, 'shop.a_x*.b_y'],
    ['a shared outer level under detailed_metric shows its prefix', { value: 'x*', ...S }, D, 'shop.a_x.b_y'],
    ['a shared outer level with value_to_metric shows its prefix', { value: 'x*', ...S, ...V }, {}, 'shop.a_x.b'],
  ])('%s', (_name, outer, inner, key) => {
    expect(keyOf(nested(outer, inner), 'a=x,b=y').key).toBe(key);
  });
});

it('the plain statistics key contains no request values', () => {
  expect(keyOf({ key: 'k', rateLimit, ...D }, 'k=secret').plain).toBe('shop.k');
  expect(keyOf({ key: 'k', value: 'a*', rateLimit, ...V }, 'k=abc').plain).toBe('shop.k_a*');
});
