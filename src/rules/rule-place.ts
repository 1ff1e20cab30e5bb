import type { RuleConfig } from './rule-config';

/** Where a rule is configured. */
export interface RulePlace {
  /** The file, relative to the rule folder; for xDS, the name of the resource. */
  readonly file: string;
  /** Of its `key`, counted from 1; 0 in a source without lines, such as an xDS resource. */
  readonly line: number;
  /** Counted from 1, in characters; 0 in a source without lines. */
  readonly column: number;
}

/** Finds where a rule is configured; undefined when that is not known. */
export type PlaceOf = (rule: RuleConfig) => RulePlace | undefined;

export const NO_PLACES: PlaceOf = () => undefined;
