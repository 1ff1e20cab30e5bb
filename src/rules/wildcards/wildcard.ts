/**
 * A compiled pattern: a value with at least one `*`. Each `*` matches zero or more characters; the parts between them must occur
 * in order and without overlap. Matching is linear in the length of the value for every pattern: it needs neither regular
 * expressions nor backtracking.
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
      // The leftmost occurrence leaves the most room for the remaining parts, so no other one needs to be tried.
      const found = value.indexOf(part, position);
      if (found === -1 || found + part.length > end) return false;
      position = found + part.length;
    }
    return true;
  }
}
