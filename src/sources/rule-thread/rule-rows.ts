import type { DomainConfig, RuleConfig } from '../../rules/rule-config';
import type { Rule } from '../../rules/rule-tree';
import { type CompiledKey, type Ruleset, RulesetBuilder } from '../../rules/ruleset';
import { compileWildcards } from '../../rules/wildcards/compile-wildcards';
import { needsIndex } from '../../rules/wildcards/wildcard-rules';

/** One row of a flattened configuration tree, parents before children: however deep the tree is, its rows can be split anywhere. */
export type RuleRow =
  /** The rules that follow belong to this domain. */
  | { readonly domain: string }
  /** One rule with empty `descriptors`: the rows after it with a greater depth are nested in it. */
  | { readonly depth: number; readonly rule: RuleConfig }
  /** The wildcards of a key among the rules of this depth, all of which precede this row. */
  | { readonly depth: number; readonly wildcards: CompiledKey };

/** Flattens configurations into rows. */
export function* rowsOf(configs: readonly DomainConfig[]): IterableIterator<RuleRow> {
  for (const { domain, descriptors } of configs) {
    yield { domain };
    yield* rulesOf(descriptors, 0);
  }
}

function* rulesOf(rules: readonly RuleConfig[], depth: number): IterableIterator<RuleRow> {
  for (const rule of rules) {
    const { descriptors } = rule;
    yield { depth, rule: { ...rule, descriptors: [] } };
    yield* rulesOf(descriptors, depth + 1);
  }
  for (const [key, values] of wildcardsOf(rules)) {
    const patterns = [...values];
    if (needsIndex(patterns)) yield { depth, wildcards: { key, compiled: compileWildcards(patterns) } };
  }
}

/** The different values with a wildcard of each key, in order, which is that of their rules in the ruleset. */
function wildcardsOf(rules: readonly RuleConfig[]): ReadonlyMap<string, ReadonlySet<string>> {
  const byKey = new Map<string, Set<string>>();
  for (const { key, value } of rules) {
    if (!value.includes('*')) continue;
    const patterns = byKey.get(key);
    if (patterns === undefined) byKey.set(key, new Set([value]));
    else patterns.add(value);
  }
  return byKey;
}

/** Builds a ruleset from rows, incrementally. */
export class RowsBuilder {
  readonly #builder = new RulesetBuilder();
  /** By depth, the last rule. */
  readonly #parents: Rule[] = [];
  #domain = '';

  add(rows: readonly RuleRow[]): void {
    for (const row of rows) {
      if ('domain' in row) {
        this.#domain = row.domain;
        this.#builder.add({ domain: row.domain, descriptors: [] });
      } else if ('wildcards' in row) {
        this.#builder.useCompiled(this.#domain, row.wildcards, this.#parents[row.depth - 1]);
      } else {
        this.#parents[row.depth] = this.#builder.addRule(this.#domain, row.rule, this.#parents[row.depth - 1]);
      }
    }
  }

  done(): Ruleset {
    return this.#builder.done();
  }
}
