import { KEY_TOLERANCE, nearestName } from '../../../text/nearest-name';
import type { DomainConfig, RuleConfig } from '../../rule-config';
import { isForAnyValue } from '../../values';
import { Wildcard } from '../../wildcards';
import type { ProblemDetails } from '../problems/problem';
import { placeFrom } from '../problems/source-text';
import { showText } from '../yaml/yaml-tree';
import { type Locations, checkMetric, checkZeroLimit } from './check-rule';

/**
 * Warns about rules that are valid by themselves, but have less effect than they seem to have because of other rules or
 * of the levels above them. To be called only for rules without errors.
 * @param domains the rules of each one in all files
 */
export function checkRules(
  domains: readonly Pick<DomainConfig, 'descriptors' | 'unmatched'>[],
  locations: Locations,
): void {
  const warnOfUnreachable = reachCheck(locations);
  for (const { descriptors, unmatched } of domains) {
    warnOfUnreachable(descriptors);
    walk(descriptors, [], (rule, path) => {
      warnOfUnreachable(rule.descriptors);
      checkZeroLimit(rule, path, locations);
      checkMetric(rule, path, locations);
    });
    checkReplaces(unmatched === undefined ? descriptors : [...descriptors, unmatched], locations);
  }
}

/** Calls back for every rule with its path: the rules that contain it, the outermost first, and itself last. */
function walk(
  rules: readonly RuleConfig[],
  above: RuleConfig[],
  visit: (rule: RuleConfig, path: readonly RuleConfig[]) => void,
): void {
  for (const rule of rules) {
    above.push(rule);
    visit(rule, above);
    walk(rule.descriptors, above, visit);
    above.pop();
  }
}

/**
 * The wildcards of one key are compared in pairs; after this many comparisons in total, rules are assumed to be
 * reachable.
 */
const MAX_COMPARISONS = 1_000_000;
/** Represents any text that a `*` matches. No rule file contains this character. */
const ANYTHING = '\uffff';

interface Pattern {
  readonly rule: RuleConfig;
  readonly wildcard: Wildcard;
}

/**
 * Returns what warns about rules of a level that never match, because a rule that is tried earlier matches every value
 * that they match. The rules are all of the level, in the order in which they are tried.
 */
function reachCheck(locations: Locations): (rules: readonly RuleConfig[]) => void {
  let comparisons = 0;
  function compare(rule: RuleConfig, earlier: readonly Pattern[]): void {
    // A pattern covers another pattern if and only if it matches that pattern with each `*` replaced by a character
    // that occurs nowhere else. It covers every value if and only if it matches the empty one, because it consists of
    // `*` only then.
    const widest = rule.value.replaceAll(/\*+/g, ANYTHING);
    comparisons += earlier.length;
    if (comparisons > MAX_COMPARISONS) return;
    const cover = earlier.find(({ wildcard }) => wildcard.matches(widest));
    if (cover !== undefined) reportUnreachable(rule, cover.rule, locations);
  }
  return (rules) => {
    const patterns = new Map<string, Pattern[]>();
    for (const rule of rules) {
      if (!rule.value.includes('*')) continue;
      const earlier = patterns.get(rule.key) ?? [];
      compare(rule, earlier);
      earlier.push({ rule, wildcard: new Wildcard(rule.value) });
      patterns.set(rule.key, earlier);
    }
    if (patterns.size === 0) return;
    // Rules with regular expressions and those without value are tried last, regardless of their position.
    for (const rule of rules) {
      if (rule.valueRegex !== undefined || isForAnyValue(rule)) compare(rule, patterns.get(rule.key) ?? []);
    }
  };
}

function reportUnreachable(rule: RuleConfig, cover: RuleConfig, locations: Locations): void {
  const location = locations.get(rule);
  const coverLocation = locations.get(cover);
  if (location === undefined || coverLocation === undefined) return;
  const where = placeFrom(location.context.source, coverLocation.context.source, coverLocation.value);
  const nested = rule.descriptors.length > 0 ? ', nor does any rule nested in it' : '';
  const shown = showText(cover.value);
  location.context.report(isForAnyValue(rule) ? location.key : location.value, {
    code: 'unreachable-rule',
    message: `this rule never matches${nested}: '${shown}' at ${where} matches all of its values first`,
    advice:
      rule.value === ''
        ? 'Remove one of the two: rules with value_regex or without value are tried after the wildcards of their key.'
        : 'Put it before the wildcard: the first wildcard that matches is used.',
  });
}

/** After this many comparisons of names in total, no more names are suggested. */
const MAX_NAME_COMPARISONS = 100_000;

/**
 * Warns about `replaces` entries that replace nothing. Only rules of the same domain count, because a request has one
 * domain.
 * @param rules the top level of a domain, and its default
 */
function checkReplaces(rules: readonly RuleConfig[], locations: Locations): void {
  /** The names of the rules with a limit, and of those that are unlimited. */
  const [limited, unlimited] = [new Set<string>(), new Set<string>()];
  const replacing: RuleConfig[] = [];
  walk(rules, [], (rule) => {
    for (const limit of rule.limits) if (limit.name !== '') (limit.unlimited ? unlimited : limited).add(limit.name);
    if (rule.limits.some(({ replaces }) => replaces.length > 0)) replacing.push(rule);
  });
  let comparisons = 0;
  /** The problem with a name in `replaces`; undefined when it names a rule with a limit. */
  function problemOf(name: string): ProblemDetails | undefined {
    if (limited.has(name)) return undefined;
    const shown = showText(name);
    if (unlimited.has(name)) {
      const message = `'${shown}' is the name of an unlimited rule, which is never replaced`;
      return { code: 'replaces-unlimited', message };
    }
    comparisons += limited.size;
    const nearest = comparisons > MAX_NAME_COMPARISONS ? undefined : nearestName(name, limited, KEY_TOLERANCE);
    return {
      code: 'replaces-unknown-name',
      message: `no rule of the domain is named '${shown}', so nothing is replaced`,
      advice:
        nearest === undefined
          ? 'Give the rule to be replaced this `name` in its `rate_limit`.'
          : `Did you mean '${nearest}'?`,
    };
  }
  for (const rule of replacing) {
    const location = locations.get(rule);
    const replaced = rule.limits.flatMap(({ replaces }) => replaces);
    for (const [index, name] of replaced.entries()) {
      const range = location?.replaces[index];
      const details = problemOf(name);
      if (range !== undefined && details !== undefined) location?.context.report(range, details);
    }
  }
}
