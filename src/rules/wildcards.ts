/** Matching a request takes more steps than its budget has. */
export class TooMuchWork extends Error {
  override readonly name = 'TooMuchWork';
}

/**
 * The steps that matching one request may still take, where their number depends on more than the length of its texts.
 * What takes such steps pays for them before it does.
 */
export class WorkBudget {
  #steps: number;

  /** @param steps Infinity for no limit */
  constructor(steps: number) {
    this.#steps = steps;
  }

  /** Starts the budget of another request. */
  renew(steps: number): void {
    this.#steps = steps;
  }

  /** @throws TooMuchWork when fewer steps are left */
  spend(steps: number): void {
    this.#steps -= steps;
    if (this.#steps < 0) throw new TooMuchWork();
  }
}

/** The budget of a search that no caller can cause. */
export const UNLIMITED_WORK = new WorkBudget(Infinity);

/**
 * For texts longer than this, V8's `indexOf` can take time in proportion to their length for each character that it
 * searches.
 */
const QUICK_PART = 250;
/** Searching so many characters takes about as long as one step, also in a text that repeats itself. */
const CHARACTERS_PER_STEP = 8;

/**
 * A compiled pattern: a value with at least one `*`. Each `*` matches zero or more characters; the parts between them
 * must occur in order and without overlap. It needs neither regular expressions nor backtracking.
 */
export class Wildcard {
  /** The text before the first `*`. */
  readonly first: string;
  /** Whether the pattern is this text and a `*`. */
  readonly isPrefix: boolean;
  readonly #between: readonly string[];
  readonly #last: string;
  readonly #fixedLength: number;
  /** How often each character of a value is looked at, at most. */
  readonly #looks: number;

  constructor(pattern: string) {
    const parts = pattern.split('*');
    this.first = parts[0] ?? '';
    this.#last = parts.at(-1) ?? '';
    this.#between = parts.slice(1, -1).filter((part) => part !== '');
    this.#fixedLength = parts.reduce((length, part) => length + part.length, 0);
    this.#looks = this.#between.reduce((sum, { length }) => sum + (length > QUICK_PART ? length : 1), 0);
    this.isPrefix = this.#fixedLength === this.first.length;
  }

  /** The steps that {@link matches} takes for a value of this length, at most. */
  stepsFor(length: number): number {
    return 1 + (this.#looks * length) / CHARACTERS_PER_STEP;
  }

  matches(value: string): boolean {
    if (value.length < this.#fixedLength) return false;
    if (!value.startsWith(this.first) || !value.endsWith(this.#last)) return false;
    const end = value.length - this.#last.length;
    let position = this.first.length;
    for (const part of this.#between) {
      // The leftmost occurrence leaves the most room for the remaining parts, so no other one needs to be tried.
      const found = value.indexOf(part, position);
      if (found === -1 || found + part.length > end) return false;
      position = found + part.length;
    }
    return true;
  }
}

/** Up to this number, trying one after the other takes less time than looking prefixes up. */
const MAX_LIST = 8;

/** A rule whose value is a wildcard. */
export interface WildcardRule {
  readonly matcher: unknown;
}

/**
 * The wildcards of one key, in the order in which the file lists them. Of many, those that end with their only `*`, as
 * most do, are looked up by the beginning of the value, once for each length that such a beginning has; the others are
 * tried one after the other.
 */
export class WildcardRules<T extends WildcardRule> {
  /** In order. */
  readonly rules: T[] = [];
  /** The position of each rule whose pattern is a prefix, by this prefix. */
  readonly #prefixes = new Map<string, number>();
  /** The different lengths of these prefixes, ascending. */
  #lengths: number[] = [];
  /** The positions of the others, ascending. */
  readonly #others: number[] = [];

  add(rule: T): void {
    const position = this.rules.push(rule) - 1;
    const { first, isPrefix } = rule.matcher as Wildcard;
    if (!isPrefix) {
      this.#others.push(position);
      return;
    }
    if (!this.#prefixes.has(first)) this.#prefixes.set(first, position);
    if (!this.#lengths.includes(first.length)) {
      this.#lengths = [...this.#lengths, first.length].toSorted((one, other) => one - other);
    }
  }

  /**
   * The first rule whose wildcard matches.
   * @throws TooMuchWork
   */
  find(value: string, budget: WorkBudget): T | undefined {
    if (this.rules.length <= MAX_LIST) return this.rules.find((rule) => matches(rule, value, budget));
    const found = this.#findPrefix(value, budget);
    for (const position of this.#others) {
      if (position > found) break;
      if (matches(this.rules[position] as T, value, budget)) return this.rules[position];
    }
    return this.rules[found];
  }

  /** The position of the first rule whose prefix the value begins with; Infinity if there is none. */
  #findPrefix(value: string, budget: WorkBudget): number {
    let found = Infinity;
    for (const length of this.#lengths) {
      if (length > value.length) break;
      budget.spend(1 + length / CHARACTERS_PER_STEP);
      const position = this.#prefixes.get(value.slice(0, length));
      if (position !== undefined && position < found) found = position;
    }
    return found;
  }
}

/** @throws TooMuchWork */
function matches({ matcher }: WildcardRule, value: string, budget: WorkBudget): boolean {
  const wildcard = matcher as Wildcard;
  budget.spend(wildcard.stepsFor(value.length));
  return wildcard.matches(value);
}
