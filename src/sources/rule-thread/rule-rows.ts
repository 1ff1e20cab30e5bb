import type { DomainConfig, RuleConfig } from '../../rules/rule-config';
import { type Rule } from '../../rules/rule-tree';
import { type Ruleset, RulesetBuilder } from '../../rules/ruleset';

/** A piece of a configuration tree laid out flat, parents before what is nested in them: however deep, it can be cut anywhere. */
export type RuleRow =
  /** The rules that follow are this domain's. */
  | { readonly domain: string }
  /** One rule alone, its `descriptors` empty: the rows after it with a greater depth are nested in it. */
  | { readonly depth: number; readonly rule: RuleConfig };

/** Lays configurations out as rows. */
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

/** Makes a ruleset of rows, some at a time. */
export class RowsBuilder {
  readonly #builder = new RulesetBuilder();
  /** The last rule of each depth. */
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
