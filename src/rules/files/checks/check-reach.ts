import type { RuleConfig } from '../../rule-config';
import { Wildcard } from '../../wildcard';
import type { ProblemReport } from '../problems/problem-report';
import type { RulePlaces } from '../fields/reading';
import { showText } from '../yaml/yaml-text';

/** Wildcards of one key are held against each other; beyond so many pairs in all, rules are taken to be reachable. */
const MAX_COMPARISONS = 1_000_000;
/** Stands for whatever a `*` matches. No rule file has this character. */
const ANYTHING = '\uffff';

interface Pattern {
  readonly rule: RuleConfig;
  readonly wildcard: Wildcard;
}

/** Finds rules that never match, because a rule that is tried before them matches everything that they do. */
export class ReachCheck {
  readonly #places: RulePlaces;
  readonly #report: ProblemReport;
  #comparisons = 0;

  constructor(places: RulePlaces, report: ProblemReport) {
    this.#places = places;
    this.#report = report;
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
    // A rule without value is tried last, wherever it stands.
    for (const rule of rules) {
      if (rule.value === '') this.#compare(rule, patterns.get(rule.key) ?? []);
    }
  }

  #compare(rule: RuleConfig, earlier: readonly Pattern[]): void {
    // A pattern covers another one exactly when it matches it with something unheard-of in place of each `*`; and every
    // value exactly when it matches the empty one, because it is made of `*` alone then.
    const widest = rule.value.replaceAll(/\*+/g, ANYTHING);
    this.#comparisons += earlier.length;
    if (this.#comparisons > MAX_COMPARISONS) return;
    const cover = earlier.find(({ wildcard }) => wildcard.matches(widest));
    if (cover !== undefined) this.#warn(rule, cover.rule);
  }

  #warn(rule: RuleConfig, cover: RuleConfig): void {
    const place = this.#places.get(rule);
    const coverPlace = this.#places.get(cover);
    if (place === undefined || coverPlace === undefined) return;
    const name = coverPlace.source.nameOf(coverPlace.value);
    const where = coverPlace.source === place.source ? name : `${coverPlace.source.file}, ${name}`;
    const nested = rule.descriptors.length > 0 ? ', nor anything nested in it' : '';
    const message = `this rule is never reached${nested}: '${showText(cover.value)}' in ${where} takes every value before it`;
    const advice =
      rule.value === ''
        ? `Take one of the two out: a rule without value is tried after the wildcards of its key.`
        : `Put it before the wildcard: the first one that matches counts.`;
    this.#report.add(place.source, rule.value === '' ? place.key : place.value, 'unreachable-rule', message, advice);
  }
}
