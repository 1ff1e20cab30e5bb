import { type Entry, Level, Rule, type RuleLimit, limitsOfRule } from './rule-tree';
import { UNLIMITED_WORK, type WorkBudget } from './wildcards';
import { type DomainConfig, NO_PLACES, type PlaceOf, type RuleConfig } from './rule-config';
import { plainStatisticsKey } from './statistics-key';
import { counted } from '../text/counted';
import { excerpt } from '../text/excerpt';

/** All active rules. Immutable: a reload creates another one. */
export class Ruleset {
  /** The number of rules. */
  readonly size: number;
  /** The first rule that needs a store with scripts, if there is one: its limit has an algorithm, or it is all or nothing. */
  readonly withScripts: Rule | undefined;
  /**
   * Of the rules that need such a store, those without a policy of their own for its failures, and the names of the first ones:
   * STORE_FAILURE_POLICY=local does not cover them.
   */
  readonly notLocal: { readonly count: number; readonly names: readonly string[] };

  /**
   * @param domains the top level of each domain
   * @param unmatched what applies to descriptors that match no rule, by domain: `default_rate_limit` or `on_unmatched: deny`
   */
  constructor(
    readonly domains: ReadonlyMap<string, Level>,
    readonly unmatched: ReadonlyMap<string, Rule>,
    { size, withScripts, notLocal }: Pick<Ruleset, 'size' | 'withScripts' | 'notLocal'>,
  ) {
    this.size = size;
    this.withScripts = withScripts;
    this.notLocal = notLocal;
  }

  /** The top level of a domain, undefined when no rule file names it. */
  domain(name: string): Level | undefined {
    return this.domains.get(name);
  }
}

/** How many names a list of rules has. */
const MAX_NAMES = 3;

/** What STORE_FAILURE_POLICY=local does not cover, as a warning; undefined: nothing. */
export function notLocalWarning({ notLocal: { count, names } }: Ruleset): string | undefined {
  if (count === 0) return undefined;
  const list = names.map((name) => excerpt(name, 60)).join(', ');
  return (
    `STORE_FAILURE_POLICY=local does not cover limits with an algorithm or all_or_nothing: without the store, calls for ` +
    `${counted(count, 'rule')} (${list}${count > names.length ? ', …' : ''}) fail, unless on_store_failure of the rule is allow or deny`
  );
}

/** How much work the search for a descriptor's rule may take, and who observes it. */
export interface Search {
  readonly budget: WorkBudget;
  /** Called with each level that is searched and the rule found there, for an explanation; undefined for a decision. */
  readonly visit: ((level: Level, entry: Entry, found: Rule | undefined) => void) | undefined;
}

const UNLIMITED_SEARCH: Search = { budget: UNLIMITED_WORK, visit: undefined };

/**
 * The rule that a descriptor matches: one level of the tree for each entry, where the rule of the last entry is the result.
 * Undefined when a level has no match, or when entries remain and no rules are nested. There is no backtracking: when a level
 * has a match, its less specific rules are not tried.
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
 * One line for each rule with a `rate_limit`, and for what applies to descriptors that match none, in no particular order, as `/rlconfig` shows them:
 * `<key path>: unit=<U> requests_per_unit=<n>, shadow_mode: <b>, quota_mode: <b>`. These are the lines of the Go service, in which an
 * unlimited rule has the unit UNKNOWN and 0 requests, as if it were banned; a comment after the line says what it is. A window of several
 * units has a ` unit_multiplier=<n>` after its unit, one of the calendar ` time_zone=<zone> starts_on=<day>`; an algorithm comes after the
 * number, `enforce_percent`, `all_or_nothing` and a policy of the rule's own for failures of the store come last. A rule with `rate_limits` has a line for
 * each of them.
 */
export function* listRules(ruleset: Ruleset): IterableIterator<string> {
  for (const [domain, level] of ruleset.domains) {
    const unmatched = ruleset.unmatched.get(domain);
    if (unmatched !== undefined) yield* linesOf(unmatched);
    for (const { rule } of level.walk()) yield* linesOf(rule);
  }
}

function linesOf(rule: Rule): readonly string[] {
  return limitsOfRule(rule).map((limit) => lineOf(rule, limit));
}

function lineOf(rule: Rule, { unlimited, unit, requestsPerUnit, ...limit }: RuleLimit): string {
  const { unitMultiplier, calendar, algorithm, burst } = limit;
  const window =
    (unitMultiplier === 1 ? '' : ` unit_multiplier=${unitMultiplier}`) +
    (calendar === undefined ? '' : ` time_zone=${calendar.timeZone} starts_on=${calendar.startsOn}`);
  const counting =
    (algorithm === undefined ? '' : ` algorithm=${algorithm}`) + (burst === undefined ? '' : ` burst=${burst}`);
  const shown = `unit=${unit?.name ?? 'UNKNOWN'}${window} requests_per_unit=${requestsPerUnit}${counting}`;
  const modes = `shadow_mode: ${rule.shadowMode}, quota_mode: ${rule.quotaMode}`;
  const enforced = rule.enforcePercent === undefined ? '' : `, enforce_percent: ${rule.enforcePercent}`;
  const together = rule.allOrNothing ? ', all_or_nothing: true' : '';
  const policy = rule.onStoreFailure === undefined ? '' : `, on_store_failure: ${rule.onStoreFailure}`;
  const comment = unlimited ? ' # unlimited' : unit === undefined ? ' # denied' : '';
  return `${plainStatisticsKey(rule)}: ${shown}, ${modes}${enforced}${together}${policy}${comment}`;
}

/** One row of a flattened configuration tree, parents before children: however deep the tree is, its rows can be split anywhere. */
export type RuleRow =
  /** The rules that follow belong to this domain. */
  | { readonly domain: string }
  /** The rules that follow are in this file: a row of its own, so that its name is neither sent nor kept once per rule. */
  | { readonly file: string }
  /**
   * One rule with empty `descriptors`: the rows after it with a greater depth are nested in it. The depth of what applies to descriptors
   * that match no rule is {@link UNMATCHED}. The position in the file is absent when it is not known.
   */
  | { readonly depth: number; readonly rule: RuleConfig; readonly line?: number; readonly column?: number };

/** The depth of what applies to descriptors that match no rule. */
const UNMATCHED = -1;

/** Flattens configurations into rows that can be sent to another thread. */
export function* rowsOf(configs: readonly DomainConfig[], placeOf: PlaceOf = NO_PLACES): IterableIterator<RuleRow> {
  const places = { placeOf, file: '' };
  for (const { domain, descriptors, unmatched } of configs) {
    yield { domain };
    if (unmatched !== undefined) yield* rulesOf([unmatched], UNMATCHED, places);
    yield* rulesOf(descriptors, 0, places);
  }
}

/** Where rules are, and the file of the last row. */
interface Places {
  readonly placeOf: PlaceOf;
  file: string;
}

function* rulesOf(rules: readonly RuleConfig[], depth: number, places: Places): IterableIterator<RuleRow> {
  for (const rule of rules) {
    const { descriptors } = rule;
    const place = places.placeOf(rule);
    if (place !== undefined && place.file !== places.file) {
      places.file = place.file;
      yield { file: place.file };
    }
    const row = { depth, rule: { ...rule, descriptors: [] } };
    yield place === undefined ? row : { ...row, line: place.line, column: place.column };
    yield* rulesOf(descriptors, depth + 1, places);
  }
}

/** Builds a ruleset from checked configurations; configurations of one domain are joined in order. */
export function buildRuleset(configs: readonly DomainConfig[], placeOf: PlaceOf = NO_PLACES): Ruleset {
  const builder = new RulesetBuilder();
  for (const config of configs) builder.addDomain(config, placeOf);
  return builder.done();
}

/** Builds a ruleset incrementally, so that a large one can be built between other work. */
export class RulesetBuilder {
  readonly #domains = new Map<string, Level>();
  readonly #unmatched = new Map<string, Rule>();
  /** By depth, the last rule. */
  readonly #parents: Rule[] = [];
  #domain = '';
  /** Of the domain. */
  #top = new Level();
  #file = '';
  #size = 0;
  #withScripts: Rule | undefined;
  readonly #notLocal = { count: 0, names: [] as string[] };

  /** Adds the rules of a domain as a tree, without the copies that rows are. */
  addDomain({ domain, descriptors, unmatched }: DomainConfig, placeOf: PlaceOf): void {
    this.#enter(domain);
    if (unmatched !== undefined) this.#addTree([unmatched], UNMATCHED, placeOf);
    this.#addTree(descriptors, 0, placeOf);
  }

  addRows(rows: readonly RuleRow[]): void {
    for (const row of rows) {
      if ('domain' in row) this.#enter(row.domain);
      else if ('file' in row) this.#file = row.file;
      else {
        const rule = this.#addRule(row.rule, row.depth);
        const { line, column } = row;
        if (line !== undefined && column !== undefined) rule.place = { file: this.#file, line, column };
      }
    }
  }

  done(): Ruleset {
    const [size, withScripts, notLocal] = [this.#size, this.#withScripts, this.#notLocal];
    return new Ruleset(this.#domains, this.#unmatched, { size, withScripts, notLocal });
  }

  #enter(domain: string): void {
    this.#domain = domain;
    this.#top = this.#domains.get(domain) ?? new Level();
    this.#domains.set(domain, this.#top);
  }

  #addTree(configs: readonly RuleConfig[], depth: number, placeOf: PlaceOf): void {
    for (const config of configs) {
      this.#addRule(config, depth).place = placeOf(config);
      if (config.descriptors.length > 0) this.#addTree(config.descriptors, depth + 1, placeOf);
    }
  }

  /** Adds a rule without those nested in it. A rule of a key and value that its level already has is left out, and so are those. */
  #addRule(config: RuleConfig, depth: number): Rule {
    const parent = depth <= 0 ? undefined : this.#parents[depth - 1];
    const rule = new Rule(config, this.#domain, parent);
    const needsScripts = rule.allOrNothing || limitsOfRule(rule).some(({ algorithm }) => algorithm !== undefined);
    if (needsScripts) this.#withScripts ??= rule;
    if (depth === UNMATCHED) {
      this.#unmatched.set(this.#domain, rule);
      if (needsScripts) this.#addNotLocal(rule);
      return rule;
    }
    const level = parent === undefined ? this.#top : (parent.nested ??= new Level());
    this.#parents[depth] = rule;
    if (!level.add(rule)) return rule;
    this.#size += 1;
    if (needsScripts) this.#addNotLocal(rule);
    return rule;
  }

  #addNotLocal(rule: Rule): void {
    if (rule.onStoreFailure !== undefined) return;
    this.#notLocal.count += 1;
    if (this.#notLocal.names.length < MAX_NAMES) this.#notLocal.names.push(plainStatisticsKey(rule));
  }
}
