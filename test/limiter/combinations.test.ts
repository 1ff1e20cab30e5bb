import type { LimiterOptions } from '../../src/limiter/options';
import { Code } from '../../src/limiter/verdict';
import { buildRuleset } from '../../src/rules/ruleset';
import fc from '../support/data/properties';
import { type RuleSketch, domainConfig, limit, ruleConfig, unlimited } from '../support/data/rules';
import { call, hits, isNegative, serve, shown } from './serve';

/** What a rule says: its limits per hour and, of several, per day. */
interface Policy {
  readonly limits: readonly number[];
  readonly allOrNothing?: boolean;
  readonly shadowMode?: boolean;
  readonly quotaMode?: boolean;
}

const POLICIES: Readonly<Record<string, Policy>> = {
  plain: { limits: [5] },
  banned: { limits: [0] },
  shadow: { limits: [3], shadowMode: true },
  quota: { limits: [4], quotaMode: true },
  several: { limits: [3, 6] },
  together: { limits: [3, 6], allOrNothing: true },
  'together-shadow': { limits: [2, 5], allOrNothing: true, shadowMode: true },
  'together-quota': { limits: [2, 5], allOrNothing: true, quotaMode: true },
};

function ruleOf([key, { limits, ...flags }]: [string, Policy]): RuleSketch {
  const [hour, ...day] = limits.map((most, index) => limit(most, index === 0 ? 'HOUR' : 'DAY'));
  return { key, ...flags, ...(day.length === 0 ? { rateLimit: hour } : { rateLimits: [hour!, ...day] }) };
}

const DENY: RuleSketch = { key: 'on_unmatched', value: 'deny', rateLimit: unlimited({ unlimited: false }) };

/**
 * A descriptor of a request: its key, and its hits; negative ones, and −0, are given back. A key without policy matches
 * no rule.
 */
interface Asked {
  readonly key: string;
  readonly hits: number;
}

/** One limit of a descriptor, with the outcome. */
interface Step extends Asked {
  readonly name: string;
  readonly most: number;
  readonly policy: Policy;
  isOver: boolean;
  left: number;
}

type Options = Pick<LimiterOptions, 'stopIncrementWhenOverLimit' | 'quotaMode' | 'shadowMode' | 'localCacheBytes'>;

/** What is kept between requests. */
interface Kept {
  /** By name of the counter. */
  readonly counts: Map<string, number>;
  /** The counters in the local cache. */
  readonly cached: Set<string>;
}

/** Decides as docs/rules.md says, without a line of the code. */
function modelled(asked: readonly Asked[], options: Options, { counts, cached }: Kept): string {
  const steps = asked.map((each): readonly Step[] => {
    const policy = POLICIES[each.key];
    return (policy?.limits ?? []).map((most, index) => {
      return { ...each, name: `${each.key} ${index}`, most, policy: policy!, isOver: false, left: 0 };
    });
  });
  const denied = asked.map(({ key, hits: count }) => POLICIES[key] === undefined && !isNegative(count));
  const apart = steps.flat().filter(({ policy }) => policy.allOrNothing !== true);
  const known = apart.map(({ name, hits: count }) => {
    if (isNegative(count)) cached.delete(name);
    return cached.has(name);
  });
  const isAnyKnown = known.includes(true);
  const goOver = goingOver(apart, new Map(counts));
  const isStopped =
    options.stopIncrementWhenOverLimit &&
    (isAnyKnown || (!options.quotaMode && denied.includes(true)) || goOver.includes(true));
  for (const [index, step] of apart.entries()) {
    const { name, hits: count, most } = step;
    const before = counts.get(name) ?? 0;
    const isCounted = count < 0 || !isStopped || (goOver[index]! && !isAnyKnown);
    if (isCounted && !known[index]) counts.set(name, Math.max(0, before + count));
    const after = counts.get(name) ?? 0;
    step.isOver = known[index] || (!isNegative(count) && after > most);
    step.left = step.isOver ? 0 : Math.max(0, most - after);
    if (step.isOver && options.localCacheBytes > 0) cached.add(name);
  }
  for (const { name, hits: count } of apart) if (isNegative(count)) cached.delete(name);
  for (const group of steps) if (group[0]?.policy.allOrNothing === true) countTogether(group, counts);
  const outcomes = asked.map((_, index) => outcomeOf(steps[index]!, denied[index]!));
  const over = outcomes.map(({ isOver }) => isOver);
  const isQuota = asked.map(({ key }) => options.quotaMode || POLICIES[key]?.quotaMode === true);
  const quotas = over.filter((_, index) => isQuota[index]);
  const isOver = over.some((each, index) => each && !isQuota[index]) || (quotas.length > 0 && !quotas.includes(false));
  return textOf(
    isOver && !options.shadowMode,
    outcomes.map((each) => `${each.isOver ? 'OVER' : 'OK'} ${each.left}`).join(', '),
  );
}

/** Whether each is over its limit or would go over, alone, but for what is given back before it. */
function goingOver(steps: readonly Step[], counts: Map<string, number>): readonly boolean[] {
  return steps.map(({ name, hits: count, most }) => {
    const before = counts.get(name) ?? 0;
    if (count < 0) counts.set(name, Math.max(0, before + count));
    return !isNegative(count) && before + count > most;
  });
}

function countTogether(group: readonly Step[], counts: Map<string, number>): void {
  for (const step of group) step.isOver = step.hits > 0 && (counts.get(step.name) ?? 0) + step.hits > step.most;
  const isDenied = group.some(({ isOver }) => isOver);
  for (const step of group) {
    const before = counts.get(step.name) ?? 0;
    const after = isDenied ? before : Math.max(0, before + step.hits);
    counts.set(step.name, after);
    step.left = Math.max(0, step.most - after);
  }
}

/**
 * Of several limits, the last one that is over has the longest reset; of those that are not, the one with the fewest
 * left.
 */
function outcomeOf(steps: readonly Step[], isDenied: boolean): { isOver: boolean; left: number } {
  if (steps.length === 0) return { isOver: isDenied, left: 0 };
  const over = steps.filter(({ isOver }) => isOver).at(-1);
  if (over !== undefined) return { isOver: over.policy.shadowMode !== true, left: over.left };
  return { isOver: false, left: Math.min(...steps.map(({ left }) => left)) };
}

function textOf(isOver: boolean, each: string): string {
  return `${isOver ? 'OVER' : 'OK'}: ${each}`;
}

const asked = fc.record({
  key: fc.constantFrom(...Object.keys(POLICIES), 'plain', 'unmatched', 'unmatched'),
  hits: fc.constantFrom(1, 1, 1, 2, 4, 15, 0, -0, -0, -1, -3),
});
const options = fc.record({
  localCacheBytes: fc.constantFrom(0, 0, 100_000),
  stopIncrementWhenOverLimit: fc.constantFrom(true, true, false),
  quotaMode: fc.constantFrom(false, false, true),
  shadowMode: fc.constantFrom(false, false, true),
});

it('rules in every combination of the settings and rule options that change decisions decide as the page says', () => {
  const requests = fc.array(fc.array(asked, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 12 });
  const ruleset = buildRuleset([
    { ...domainConfig('shop', ...Object.entries(POLICIES).map(ruleOf)), unmatched: ruleConfig(DENY) },
  ]);
  fc.assert(
    fc.property(options, requests, (chosen, sent) => {
      const service = serve([], chosen);
      service.ruleset = ruleset;
      const kept = { counts: new Map<string, number>(), cached: new Set<string>() };
      for (const request of sent) {
        // What the cache knows of all_or_nothing is in test/limiter/algorithms.test.ts.
        const each = chosen.localCacheBytes > 0 ? request.filter(({ key }) => !key.startsWith('together')) : request;
        if (each.length === 0) continue;
        const verdict = call(service, ...each.map(({ key, hits: count }) => hits(`${key}=x`, count)));
        const decided = textOf(verdict.overallCode === Code.OVER_LIMIT, shown(verdict));
        expect([each, decided]).toEqual([each, modelled(each, chosen, kept)]);
      }
    }),
    { numRuns: 500 },
  );
});
