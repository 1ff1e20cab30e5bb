import type { DomainConfig, RuleConfig } from '../rule-config';
import { NO_PLACES, type PlaceOf } from '../rule-config';
import type { Rule } from '../rule-tree';
import { type Ruleset, RulesetBuilder } from '../ruleset';

/** One row of a flattened configuration tree, parents before children: however deep the tree is, its rows can be split anywhere. */
export type RuleRow =
  /** The rules that follow belong to this domain. */
  | { readonly domain: string }
  /** The rules that follow are in this file: a row of its own, so that its name is neither sent nor kept once per rule. */
  | { readonly file: string }
  /**
   * One rule with empty `descriptors`: the rows after it with a greater depth are nested in it. The position in the file is absent
   * when it is not known.
   */
  | { readonly depth: number; readonly rule: RuleConfig; readonly line?: number; readonly column?: number };

/** Flattens configurations into rows. */
export function* rowsOf(configs: readonly DomainConfig[], placeOf: PlaceOf = NO_PLACES): IterableIterator<RuleRow> {
  const places = { placeOf, file: '' };
  for (const { domain, descriptors } of configs) {
    yield { domain };
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

/** Builds a ruleset from rows, incrementally. */
export class RowsBuilder {
  readonly #builder = new RulesetBuilder();
  /** By depth, the last rule. */
  readonly #parents: Rule[] = [];
  #domain = '';
  #file = '';

  add(rows: readonly RuleRow[]): void {
    for (const row of rows) {
      if ('domain' in row) {
        this.#domain = row.domain;
        this.#builder.add({ domain: row.domain, descriptors: [] });
      } else if ('file' in row) {
        this.#file = row.file;
      } else {
        const rule = this.#builder.addRule(this.#domain, row.rule, this.#parents[row.depth - 1]);
        const { line, column } = row;
        if (line !== undefined && column !== undefined) rule.place = { file: this.#file, line, column };
        this.#parents[row.depth] = rule;
      }
    }
  }

  done(): Ruleset {
    return this.#builder.done();
  }
}
