import type { WorkBudget } from './work-budget';
import { type CompiledWildcards, compileWildcards } from './compile-wildcards';
import type { Wildcard } from './wildcard';
import { WildcardIndex } from './wildcard-index';

/** Up to this number, trying one after the other takes less time than the index does for short values (measured at 3f6e6c6). */
const MAX_LIST = 8;
/** For parts longer than this, V8's `indexOf` can take time in proportion to the length of the part for each character. */
const MAX_LISTED_PART = 250;

/** A rule whose value is a wildcard. */
export interface WildcardRule {
  readonly value: string;
  readonly wildcard: Wildcard | undefined;
}

/** Whether an index finds these patterns faster than trying one after the other. */
export function needsIndex(patterns: readonly string[]): boolean {
  return patterns.length > MAX_LIST || patterns.some(hasLongPart);
}

function hasLongPart(pattern: string): boolean {
  return pattern.length > MAX_LISTED_PART && pattern.split('*').some((part) => part.length > MAX_LISTED_PART);
}

/** The wildcards of one key, in the order in which the file lists them. */
export class WildcardRules<T extends WildcardRule> {
  readonly #rules: T[] = [];
  /** Undefined until the first search, and when none is needed. */
  #index: WildcardIndex | undefined;
  #isPrepared = false;

  /** In order. */
  get rules(): readonly T[] {
    return this.#rules;
  }

  add(rule: T): void {
    this.#rules.push(rule);
    this.#index = undefined;
    this.#isPrepared = false;
  }

  /** @param compiled the patterns of all rules, in order, compiled elsewhere */
  useCompiled(compiled: CompiledWildcards): void {
    this.#index = new WildcardIndex(compiled);
    this.#isPrepared = true;
  }

  /**
   * The first rule whose wildcard matches.
   * @throws TooMuchWork
   */
  find(value: string, budget: WorkBudget): T | undefined {
    if (!this.#isPrepared) this.#prepare();
    if (this.#index !== undefined) return this.#rules[this.#index.find(value, budget)];
    for (const rule of this.#rules) {
      if (rule.wildcard?.matches(value)) return rule;
    }
    return undefined;
  }

  #prepare(): void {
    const patterns = this.#rules.map(({ value }) => value);
    if (needsIndex(patterns)) this.#index = new WildcardIndex(compileWildcards(patterns));
    this.#isPrepared = true;
  }
}
