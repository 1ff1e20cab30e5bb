import type { JsonObject, RuleConfig, RuleLimit, RuleOptions, RulePlace } from './rule-config';
import { type Matcher, MatcherRules, ValueList, matcherOf, valueText } from './values';
import { UNLIMITED_WORK, Wildcard, WildcardRules, type WorkBudget } from './wildcards';

/** One entry of a request's descriptor. */
export interface Entry {
  readonly key: string;
  readonly value: string;
}

/** What the rules after it belong to. */
export interface RuleSource {
  readonly domain: string;
  /** As {@link DomainConfig.file}. */
  readonly file?: string | undefined;
}

/** Data that is computed once for a rule and stored in it, so that a decision needs no look-up. */
export interface RuleBinding {
  readonly rule: Rule;
}

const NOTHING: readonly string[] = [];

/** One rule as a node of the tree. */
export class Rule {
  readonly key: string;
  /** Empty: any value matches. That of a list, a network or a regular expression is its {@link valueText}. */
  readonly value: string;
  /** Undefined for one exact value, and for any value. */
  readonly matcher: Matcher | undefined;
  readonly limits: readonly RuleLimit[];
  readonly options: RuleOptions;
  readonly metadata: JsonObject | undefined;
  /** Whether a level of its path has an `address_prefix`. */
  readonly countsNetworks: boolean;
  /** The names of the rules that its limits replace. */
  readonly replaces: readonly string[];
  /** The rules of the next level; undefined when there are none. */
  nested: Level | undefined = undefined;
  /** What the limiter stores here. */
  bound: RuleBinding | undefined = undefined;
  readonly #source: RuleSource;
  readonly #parent: Rule | undefined;
  #path: readonly Rule[] | undefined = undefined;
  // The place, in plain fields, as an object per rule would take twice the memory.
  readonly #line: number;
  readonly #column: number;

  /** @param source the same object for all rules of a file, as it is kept */
  constructor(config: RuleConfig, source: RuleSource, parent: Rule | undefined) {
    this.key = config.key;
    this.value = valueText(config);
    this.matcher = matcherOf(config);
    this.limits = config.limits;
    this.options = config.options;
    this.metadata = config.metadata;
    this.replaces =
      this.limits.length > 1 ? this.limits.flatMap(({ replaces }) => replaces) : (this.limit?.replaces ?? NOTHING);
    this.countsNetworks = config.options.addressPrefix !== undefined || parent?.countsNetworks === true;
    this.#source = source;
    this.#parent = parent;
    this.#line = config.line ?? 0;
    this.#column = config.column ?? 0;
  }

  get domain(): string {
    return this.#source.domain;
  }

  /**
   * The only limit of the rule, or the first one. Undefined: no limit, because the rule allows everything or only
   * contains nested rules.
   */
  get limit(): RuleLimit | undefined {
    return this.limits[0];
  }

  /**
   * The rules from the top level down to this one. Made at the first use, as most of 100,000 rules are never asked for
   * theirs.
   */
  get path(): readonly Rule[] {
    return (this.#path ??= this.#parent === undefined ? [this] : [...this.#parent.path, this]);
  }

  /** Where the rule is configured; undefined when that is not known. */
  get place(): RulePlace | undefined {
    const { file } = this.#source;
    return file === undefined ? undefined : { file, line: this.#line, column: this.#column };
  }

  /** Whether the rule matches exactly one value. */
  get isExplicit(): boolean {
    return this.value !== '' && this.matcher === undefined;
  }

  /** Whether the different values that match here are counted separately. */
  get countsByValue(): boolean {
    return !this.isExplicit && !this.options.shareThreshold;
  }
}

/** The rules of one key at one level. */
interface KeyRules {
  /**
   * By configured value, including the text of wildcards and the values of lists: a request value equal to it is an
   * exact match.
   */
  readonly byValue: Map<string, Rule>;
  wildcards: WildcardRules<Rule> | undefined;
  /** The rules with a list, a network or a regular expression. */
  others: MatcherRules<Rule> | undefined;
  withoutValue: Rule | undefined;
}

/** The rules of one level of the tree. The most specific match wins; {@link find} has the order. */
export class Level {
  readonly #byKey = new Map<string, KeyRules>();

  /** @returns false, without effect, when the level already has a rule of this key and value */
  add(rule: Rule): boolean {
    let rules = this.#byKey.get(rule.key);
    if (rules === undefined) {
      rules = { byValue: new Map(), wildcards: undefined, others: undefined, withoutValue: undefined };
      this.#byKey.set(rule.key, rules);
    }
    if (rule.value === '') {
      if (rules.withoutValue !== undefined) return false;
      rules.withoutValue = rule;
      return true;
    }
    const { matcher } = rule;
    if (matcher !== undefined && !(matcher instanceof Wildcard)) {
      if (!(rules.others ??= new MatcherRules()).add(rule)) return false;
      if (matcher instanceof ValueList) for (const value of matcher.values) rules.byValue.set(value, rule);
      return true;
    }
    if (rules.byValue.has(rule.value)) return false;
    rules.byValue.set(rule.value, rule);
    if (matcher !== undefined) (rules.wildcards ??= new WildcardRules()).add(rule);
    return true;
  }

  /**
   * The rule for this key and value: the one with exactly this value, alone or in a list, else the one with the
   * smallest network, else the first wildcard that matches, else the first regular expression, else the one without
   * value.
   * @throws TooMuchWork when that needs more work than the budget has
   */
  find(key: string, value: string, budget: WorkBudget = UNLIMITED_WORK): Rule | undefined {
    const rules = this.#byKey.get(key);
    if (rules === undefined) return undefined;
    const { byValue, wildcards, others, withoutValue } = rules;
    if (others === undefined) return byValue.get(value) ?? wildcards?.find(value, budget) ?? withoutValue;
    return (
      byValue.get(value) ??
      others.findNetwork(value, budget) ??
      wildcards?.find(value, budget) ??
      others.findRegex(value, budget) ??
      withoutValue
    );
  }

  /**
   * The rule with exactly this key and configured value, alone or in a list; an empty value stands for the rule without
   * one.
   */
  get(key: string, value: string): Rule | undefined {
    const rules = this.#byKey.get(key);
    return value === '' ? rules?.withoutValue : rules?.byValue.get(value);
  }

  /** The rule that has the same key as one of another level, and matches the same values. */
  counterpart({ key, value, matcher }: Rule): Rule | undefined {
    const isOther = matcher !== undefined && !(matcher instanceof Wildcard);
    if (isOther) return this.#byKey.get(key)?.others?.counterpart({ value, matcher });
    const rule = this.get(key, value);
    return rule?.matcher instanceof ValueList ? undefined : rule;
  }

  /** Every rule of the level: those of one key in the order of the file, then the one without a value. */
  *rules(): IterableIterator<Rule> {
    for (const key of this.#byKey.keys()) yield* this.rulesOf(key);
  }

  /**
   * Every rule of the level and of those nested in it, each parent before its children, and how deep it is nested: 0 on
   * this level. The walk can be interrupted anywhere, as a ruleset does not change.
   */
  *walk(depth = 0): IterableIterator<{ readonly rule: Rule; readonly depth: number }> {
    for (const rule of this.rules()) {
      yield { rule, depth };
      if (rule.nested !== undefined) yield* rule.nested.walk(depth + 1);
    }
  }

  /** The keys of the level, in the order of the file. */
  keys(): IterableIterator<string> {
    return this.#byKey.keys();
  }

  /** How many rules have a key. */
  countOf(key: string): number {
    const rules = this.#byKey.get(key);
    if (rules === undefined) return 0;
    const { byValue, others, withoutValue } = rules;
    const listed = others === undefined ? 0 : others.rules.size - others.listedValues;
    return byValue.size + listed + (withoutValue === undefined ? 0 : 1);
  }

  /**
   * The rules of one key: those with a value in the order of the file, then those with lists, networks and regular
   * expressions, then the one without.
   */
  *rulesOf(key: string): IterableIterator<Rule> {
    const rules = this.#byKey.get(key);
    if (rules === undefined) return;
    for (const rule of rules.byValue.values()) if (!(rule.matcher instanceof ValueList)) yield rule;
    if (rules.others !== undefined) yield* rules.others.rules.values();
    if (rules.withoutValue !== undefined) yield rules.withoutValue;
  }

  /** The values of one key that match exactly, and the texts of wildcards. */
  *valuesOf(key: string): IterableIterator<string> {
    const rules = this.#byKey.get(key);
    if (rules === undefined) return;
    yield* rules.byValue.keys();
    if (rules.withoutValue !== undefined) yield '';
  }

  /**
   * The rules of a key in the order in which {@link find} tries them for a value, without those of other exact values
   * and networks.
   */
  *tried({ key, value }: Entry): IterableIterator<Rule> {
    const rules = this.#byKey.get(key);
    if (rules === undefined) return;
    const { wildcards, others, withoutValue } = rules;
    const exact = value === '' ? undefined : rules.byValue.get(value);
    if (exact !== undefined) yield exact;
    const network = others?.findNetwork(value, UNLIMITED_WORK);
    if (network !== undefined) yield network;
    for (const rule of wildcards?.rules ?? []) if (rule !== exact) yield rule;
    yield* others?.regexes ?? [];
    if (withoutValue !== undefined) yield withoutValue;
  }

  /** How many rules {@link tried} yields, without a walk through them. */
  countTried({ key, value }: Entry): number {
    const rules = this.#byKey.get(key);
    if (rules === undefined) return 0;
    const { wildcards, others, withoutValue } = rules;
    const exact = value === '' ? undefined : rules.byValue.get(value);
    const isListed = exact !== undefined && !(exact.matcher instanceof Wildcard);
    const single = [isListed, others?.findNetwork(value, UNLIMITED_WORK) !== undefined, withoutValue !== undefined];
    return (wildcards?.rules.length ?? 0) + (others?.regexes.length ?? 0) + single.filter(Boolean).length;
  }
}
