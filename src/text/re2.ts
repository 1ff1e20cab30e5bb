import { RE2JS, RE2JSException, RE2JSSyntaxException } from 're2js';

/** What a pattern matched: the whole match first, then its groups, undefined for a group that did not participate. */
export interface PatternMatch extends ReadonlyArray<string | undefined> {
  /** The named groups; undefined when the pattern has none. */
  readonly groups?: Readonly<Record<string, string | undefined>> | undefined;
}

/** A regular expression, not anchored; JavaScript's are such patterns, too. */
export interface Pattern {
  readonly source: string;
  exec(text: string): PatternMatch | null;
}

/**
 * Compiles a regular expression in RE2 syntax, the syntax of the Go service's settings and mapping files. Matching
 * takes time in proportion to the text, whatever the pattern is.
 *
 * @throws when it is not valid; the message is a phrase to follow a colon
 */
export function compileRe2(source: string): Re2Pattern {
  try {
    return new Re2Pattern(source);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    // oxlint-disable-next-line eslint/preserve-caught-error -- it says the same in other words
    throw new Error(descriptionOf(error));
  }
}

export class Re2Pattern implements Pattern {
  readonly source: string;
  readonly #regex: RE2JS;
  readonly #names: readonly string[];

  constructor(source: string) {
    this.source = source;
    this.#regex = RE2JS.compile(source);
    this.#names = Object.keys(this.#regex.namedGroups());
  }

  /** How many instructions its program has: what one character costs at most is in proportion to it. */
  get size(): number {
    return this.#regex.programSize();
  }

  /** Whether it matches anywhere in a text. Costs a fraction of {@link exec}. */
  test(text: string): boolean {
    return this.#regex.test(text);
  }

  exec(text: string): PatternMatch | null {
    const matcher = this.#regex.matcher(text);
    if (!matcher.find()) return null;
    const match = Array.from({ length: matcher.groupCount() + 1 }, (_, index) => matcher.group(index) ?? undefined);
    if (this.#names.length === 0) return match;
    const groups = Object.fromEntries(this.#names.map((name) => [name, matcher.group(name) ?? undefined]));
    return Object.assign(match, { groups });
  }
}

function descriptionOf(error: RE2JSException): string {
  if (!(error instanceof RE2JSSyntaxException)) return error.message;
  const part = error.getPattern();
  return part === null || part === '' ? error.getDescription() : `${error.getDescription()}: ${part}`;
}
