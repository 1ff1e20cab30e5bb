import type { RuleConfig } from '../../rule-config';
import { Wildcard } from '../../wildcards';
import type { CheckContext } from './check-context';
import { showText } from '../yaml/yaml-text';

/** The wildcards of one key are compared in pairs; after this many comparisons in total, rules are assumed to be reachable. */
const MAX_COMPARISONS = 1_000_000;
/** Represents any text that a `*` matches. No rule file contains this character. */
const ANYTHING = '\uffff';

interface Pattern {
  readonly rule: RuleConfig;
  readonly wildcard: Wildcard;
}

/** Warns about rules that never match, because a rule that is tried earlier matches every value that they match. */
export class ReachCheck {
  readonly #context: CheckContext;
  #comparisons = 0;

  constructor(context: CheckContext) {
    this.#context = context;
  }

  /** @param rules all rules of one level, in the order in which they are tried */
  check(rules: readonly RuleConfig[]): void {
    const patterns = new Map<string, Pattern[]>();
    for (const rule of rules) {
      if (!rule.value.includes('*')) continue;
      const earlier = patterns.get(rule.key) ?? [];
      this.#compare(rule, earlier);
      earlier.push({ rule, wildcard: new Wildcard(rule.value) });
      patterns.set(rule.key, earlier);
    }
    if (patterns.size === 0) return;
    // A rule without value is tried last, regardless of its position.
    for (const rule of rules) {
      if (rule.value === '') this.#compare(rule, patterns.get(rule.key) ?? []);
    }
  }

  #compare(rule: RuleConfig, earlier: readonly Pattern[]): void {
    // A pattern covers another pattern if and only if it matches that pattern with each `*` replaced by a character that
    // occurs nowhere else. It covers every value if and only if it matches the empty one, because it consists of `*` only then.
    const widest = rule.value.replaceAll(/\*+/g, ANYTHING);
    this.#comparisons += earlier.length;
    if (this.#comparisons > MAX_COMPARISONS) return;
    const cover = earlier.find(({ wildcard }) => wildcard.matches(widest));
    if (cover !== undefined) this.#warn(rule, cover.rule);
  }

  #warn(rule: RuleConfig, cover: RuleConfig): void {
    const location = this.#context.locationOf(rule);
    const coverLocation = this.#context.locationOf(cover);
    if (location === undefined || coverLocation === undefined) return;
    const { source } = coverLocation;
    const name = source.describe(coverLocation.value);
    const where = source === location.source ? name : `${source.file}, ${name}`;
    const nested = rule.descriptors.length > 0 ? ', nor does any rule nested in it' : '';
    this.#context.report(location, rule.value === '' ? location.key : location.value, {
      code: 'unreachable-rule',
      message: `this rule never matches${nested}: '${showText(cover.value)}' at ${where} matches all of its values first`,
      advice:
        rule.value === ''
          ? 'Remove one of the two: a rule without value is tried after the wildcards of its key.'
          : 'Put it before the wildcard: the first wildcard that matches is used.',
    });
  }
}
