/**
 * A value with `*` in it, made ready for matching. Each `*` stands for zero or more characters; what stands between them
 * must follow in order and not overlap (document 1, rule 6). Matching looks at each character of the value a bounded
 * number of times, whatever the pattern: no regular expression, no way back.
 */
export class Wildcard {
  readonly #first: string;
  readonly #between: readonly string[];
  readonly #last: string;
  readonly #fixedLength: number;

  constructor(pattern: string) {
    const parts = pattern.split('*');
    this.#first = parts[0] ?? '';
    this.#last = parts.at(-1) ?? '';
    this.#between = parts.slice(1, -1).filter((part) => part !== '');
    this.#fixedLength = parts.reduce((length, part) => length + part.length, 0);
  }

  matches(value: string): boolean {
    if (value.length < this.#fixedLength) return false;
    if (!value.startsWith(this.#first) || !value.endsWith(this.#last)) return false;
    const end = value.length - this.#last.length;
    let position = this.#first.length;
    for (const part of this.#between) {
      // The leftmost place leaves the most room for the parts that follow, so trying others cannot help.
      const found = value.indexOf(part, position);
      if (found === -1 || found + part.length > end) return false;
      position = found + part.length;
    }
    return true;
  }
}
