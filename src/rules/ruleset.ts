import {
  type DomainConfig,
  NO_LIMIT,
  type RuleConfig,
  type RuleLimit,
  SHOWN_AFTER_NUMBER,
  nameInFiles,
} from './rule-config';
import { type Entry, Level, Rule, type RuleSource } from './rule-tree';
import { activeText, blockText } from './unit';
import { UNLIMITED_WORK, type WorkBudget } from './wildcards';
import { plainStatisticsKey } from './statistics-key';

/** How many domains or rules, and the names of the first ones. */
export interface Named {
  readonly count: number;
  /** The first ones: domains, or the statistics keys of rules without request values. */
  readonly names: readonly string[];
}

/** How many names a line of the log has. */
export const LOGGED_NAMES = 3;

export class NameList implements Named {
  count = 0;
  readonly names: string[] = [];
  readonly #most: number;

  /** @param most how many names it has */
  constructor(most = LOGGED_NAMES) {
    this.#most = most;
  }

  add(name: () => string): void {
    this.count += 1;
    if (this.names.length < this.#most) this.names.push(name());
  }
}

/** All active rules, and what is known of all of them together. Immutable: a reload creates another one. */
export interface Ruleset {
  /** The top level of each domain that a rule file names. */
  readonly domains: ReadonlyMap<string, Level>;
  /** What applies to descriptors that match no rule, by domain: `default_rate_limit` or `on_unmatched: deny`. */
  readonly unmatched: ReadonlyMap<string, Rule>;
  /** The number of rules. */
  readonly size: number;
  /**
   * The first rule that needs a store with scripts, if there is one: its limit has an algorithm or blocks, or it is
   * all or nothing.
   */
  readonly withScripts: Rule | undefined;
  /**
   * The rules that need a store with scripts, without a policy of their own for its failures:
   * STORE_FAILURE_POLICY=local does not cover them.
   */
  readonly notLocal: Named;
  /** The rules with `lease: true`. */
  readonly leased: Named;
  /** Whether a rule has a policy of its own for failures of the store, other than `error`. */
  readonly hasPolicies: boolean;
  /** Whether a limit is postpaid. */
  readonly hasPostpaid: boolean;
}

/** How much work the search for a descriptor's rule may take, and who observes it. */
export interface Search {
  readonly budget: WorkBudget;
  /** Called with each level that is searched and the rule found there, for an explanation; undefined for a decision. */
  readonly visit: ((level: Level, entry: Entry, found: Rule | undefined) => void) | undefined;
}

const UNLIMITED_SEARCH: Search = { budget: UNLIMITED_WORK, visit: undefined };

/**
 * The rule that a descriptor matches: one level of the tree for each entry, where the rule of the last entry is the
 * result. Undefined when a level has no match, or when entries remain and no rules are nested. There is no
 * backtracking: when a level has a match, its less specific rules are not tried.
 *
 * @throws TooMuchWork when the wildcards need more work than the budget has
 */
export function matchRule(
  domain: Level,
  entries: readonly Entry[],
  { budget, visit }: Search = UNLIMITED_SEARCH,
): Rule | undefined {
  let level: Level | undefined = domain;
  let rule: Rule | undefined;
  for (const entry of entries) {
    if (level === undefined) return undefined;
    rule = level.find(entry.key, entry.value, budget);
    if (visit !== undefined) visit(level, entry, rule);
    if (rule === undefined) return undefined;
    level = rule.nested;
  }
  return rule;
}

/**
 * One line for each rule with a `rate_limit`, and for what applies to descriptors that match none, in no particular
 * order, as `/rlconfig` shows them: `<key path>: unit=<U> requests_per_unit=<n>, shadow_mode: <b>, quota_mode: <b>`.
 * These are the lines of the Go service, in which an unlimited rule has the unit UNKNOWN and 0 requests, as if it were
 * banned; a comment after the line says what it is. A window of several units has a ` unit_multiplier=<n>` after its
 * unit, one of the calendar ` time_zone=<zone> starts_on=<day>`; {@link SHOWN_AFTER_NUMBER}, `active` and `block_for`
 * come after the number, `enforce_percent`, `all_or_nothing`, a policy of the rule's own for failures of the store and
 * the `address_prefix` of its levels come last. A rule with `rate_limits` has a line for each of them.
 */
export function* ruleLines(ruleset: Ruleset): IterableIterator<string> {
  for (const [domain, level] of ruleset.domains) {
    const unmatched = ruleset.unmatched.get(domain);
    if (unmatched !== undefined) yield* linesOf(unmatched);
    for (const { rule } of level.walk()) yield* linesOf(rule);
  }
}

function linesOf(rule: Rule): readonly string[] {
  return rule.limits.map((limit) => lineOf(rule, limit));
}

function lineOf(rule: Rule, { unlimited, unit, requestsPerUnit, ...limit }: RuleLimit): string {
  const { unitMultiplier, calendar } = limit;
  const { shadowMode, quotaMode, enforcePercent, allOrNothing, onStoreFailure } = rule.options;
  const window =
    (unitMultiplier === 1 ? '' : ` unit_multiplier=${unitMultiplier}`) +
    (calendar === undefined ? '' : ` time_zone=${calendar.timeZone} starts_on=${calendar.startsOn}`);
  const given = SHOWN_AFTER_NUMBER.filter((field) => limit[field] !== NO_LIMIT[field]);
  const active = limit.active === undefined ? '' : ` active=${activeText(limit.active)}`;
  const block = limit.blockFor === undefined ? '' : ` block_for=${blockText(limit.blockFor)}`;
  const counting = given.map((field) => ` ${nameInFiles(field)}=${limit[field]}`).join('') + active + block;
  const shown = `unit=${unit ?? 'UNKNOWN'}${window} requests_per_unit=${requestsPerUnit}${counting}`;
  const modes = `shadow_mode: ${shadowMode}, quota_mode: ${quotaMode}`;
  const enforced = enforcePercent === undefined ? '' : `, enforce_percent: ${enforcePercent}`;
  const together = allOrNothing ? ', all_or_nothing: true' : '';
  const networks = rule.path.flatMap(({ key, options: { addressPrefix } }) =>
    addressPrefix === undefined ? [] : [`, address_prefix of ${key}: ${addressPrefix.ipv4}/${addressPrefix.ipv6}`],
  );
  const policy = onStoreFailure === undefined ? '' : `, on_store_failure: ${onStoreFailure}`;
  const comment = unlimited ? ' # unlimited' : unit === undefined ? ' # denied' : '';
  return `${plainStatisticsKey(rule)}: ${shown}, ${modes}${enforced}${together}${policy}${networks.join('')}${comment}`;
}

/**
 * One row of a flattened configuration tree, parents before children: however deep the tree is, its rows can be split
 * anywhere.
 */
export type RuleRow =
  /**
   * What the rules that follow belong to: a row of its own, so that these names are neither sent nor kept once per
   * rule.
   */
  | RuleSource
  /**
   * One rule with empty `descriptors`: the rows after it with a greater depth are nested in it. The depth of what
   * applies to descriptors that match no rule is {@link UNMATCHED}.
   */
  | { readonly depth: number; readonly rule: RuleConfig };

/** The depth of what applies to descriptors that match no rule. */
const UNMATCHED = -1;
const NONE: readonly never[] = [];

/** Flattens configurations into rows that can be sent to another thread. */
export function* rowsOf(configs: readonly DomainConfig[]): IterableIterator<RuleRow> {
  for (const { domain, file, descriptors, unmatched } of configs) {
    yield { domain, file };
    if (unmatched !== undefined) yield* rulesOf([unmatched], UNMATCHED);
    yield* rulesOf(descriptors, 0);
  }
}

function* rulesOf(rules: readonly RuleConfig[], depth: number): IterableIterator<RuleRow> {
  for (const rule of rules) {
    yield { depth, rule: rule.descriptors.length === 0 ? rule : { ...rule, descriptors: NONE } };
    yield* rulesOf(rule.descriptors, depth + 1);
  }
}

/** Builds a ruleset from checked configurations; configurations of one domain are joined in order. */
export function buildRuleset(configs: readonly DomainConfig[]): Ruleset {
  const builder = new RulesetBuilder();
  builder.addRows(rowsOf(configs));
  return builder.done();
}

/** Builds a ruleset incrementally, so that a large one can be built between other work. */
export class RulesetBuilder {
  readonly #domains = new Map<string, Level>();
  readonly #unmatched = new Map<string, Rule>();
  /** By depth, the last rule. */
  readonly #parents: Rule[] = [];
  #source: RuleSource = { domain: '' };
  /** The top level of the domain. */
  #top = new Level();
  readonly #summary = {
    ...{ size: 0, hasPolicies: false, hasPostpaid: false },
    withScripts: undefined as Rule | undefined,
    ...{ notLocal: new NameList(), leased: new NameList() },
  };

  addRows(rows: Iterable<RuleRow>): void {
    for (const row of rows) {
      if ('rule' in row) this.#addRule(row.rule, row.depth);
      else {
        this.#source = row;
        this.#top = this.#domains.get(row.domain) ?? new Level();
        this.#domains.set(row.domain, this.#top);
      }
    }
  }

  done(): Ruleset {
    return { domains: this.#domains, unmatched: this.#unmatched, ...this.#summary };
  }

  /**
   * Adds a rule without those nested in it. A rule of a key and value that its level already has is left out, and so
   * are those.
   */
  #addRule(config: RuleConfig, depth: number): void {
    const parent = depth <= 0 ? undefined : this.#parents[depth - 1];
    const rule = new Rule(config, this.#source, parent);
    const needsScripts =
      rule.options.allOrNothing || rule.limits.some(({ algorithm, blockFor }) => (algorithm ?? blockFor) !== undefined);
    const summary = this.#summary;
    if (needsScripts) summary.withScripts ??= rule;
    if (rule.limits.some(({ postpaid }) => postpaid)) summary.hasPostpaid = true;
    if (depth === UNMATCHED) this.#unmatched.set(rule.domain, rule);
    else {
      const level = parent === undefined ? this.#top : (parent.nested ??= new Level());
      this.#parents[depth] = rule;
      if (!level.add(rule)) return;
      summary.size += 1;
    }
    function name(): string {
      return plainStatisticsKey(rule);
    }
    const { onStoreFailure = 'error' } = rule.options;
    if (onStoreFailure !== 'error') summary.hasPolicies = true;
    if (needsScripts && rule.options.onStoreFailure === undefined) summary.notLocal.add(name);
    if (rule.limits.some(({ lease }) => lease === true)) summary.leased.add(name);
  }
}
