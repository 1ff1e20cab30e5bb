import type { DomainConfig, RuleConfig } from '../../rules/rule-config';
import type { Rule } from '../../rules/rule-tree';
import { type Ruleset, RulesetBuilder } from '../../rules/ruleset';

/** One row of a flattened configuration tree, parents before children: however deep the tree is, its rows can be split anywhere. */
export type RuleRow =
  /** The rules that follow belong to this domain. */
  | { readonly domain: string }
  /** One rule with empty `descriptors`: the rows after it with a greater depth are nested in it. */
  | { readonly depth: number; readonly rule: RuleConfig };

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
      } else {
        this.#parents[row.depth] = this.#builder.addRule(this.#domain, row.rule, this.#parents[row.depth - 1]);
      }
    }
  }

  done(): Ruleset {
    return this.#builder.done();
  }
}
