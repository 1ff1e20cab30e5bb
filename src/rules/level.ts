import type { Rule } from './rule';

/** The rules of one key at one level. */
interface KeyRules {
  /** By the configured value, patterns under their own text included: a request value equal to it is an exact match. */
  readonly byValue: Map<string, Rule>;
  /** In the order in which the file lists them. */
  readonly wildcards: Rule[];
  withoutValue: Rule | undefined;
}

/** The rules of one level of the tree, found in the order of specificity (document 1, rules 4 to 6). */
export class Level {
  readonly #byKey = new Map<string, KeyRules>();

  /** @returns false when the level has a rule of this key and value already; the first one stays then */
  add(rule: Rule): boolean {
    let rules = this.#byKey.get(rule.key);
    if (rules === undefined) {
      this.#byKey.set(rule.key, (rules = { byValue: new Map(), wildcards: [], withoutValue: undefined }));
    }
    if (rule.value === '') {
      if (rules.withoutValue !== undefined) return false;
      rules.withoutValue = rule;
      return true;
    }
    if (rules.byValue.has(rule.value)) return false;
    rules.byValue.set(rule.value, rule);
    if (rule.wildcard !== undefined) rules.wildcards.push(rule);
    return true;
  }

  /**
   * The rule for this key and value: the one with exactly this value, else the first wildcard that matches, else the one
   * without value. Its cost does not grow with the number of rules, except with the wildcards of the same key.
   */
  find(key: string, value: string): Rule | undefined {
    const rules = this.#byKey.get(key);
    if (rules === undefined) return undefined;
    const exact = rules.byValue.get(value);
    if (exact !== undefined) return exact;
    for (const rule of rules.wildcards) {
      if (rule.wildcard?.matches(value)) return rule;
    }
    return rules.withoutValue;
  }

  /** Every rule of the level, in no particular order. */
  *rules(): IterableIterator<Rule> {
    for (const { byValue, withoutValue } of this.#byKey.values()) {
      yield* byValue.values();
      if (withoutValue !== undefined) yield withoutValue;
    }
  }

  /** The rules of one key: those with a value in the file's order, then the one without. */
  rulesOf(key: string): readonly Rule[] {
    const rules = this.#byKey.get(key);
    if (rules === undefined) return [];
    return [...rules.byValue.values(), ...(rules.withoutValue === undefined ? [] : [rules.withoutValue])];
  }
}
