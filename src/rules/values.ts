import type * as Re2 from '../text/re2';
import { Network, NetworkTable } from './networks';
import type { RuleConfig } from './rule-config';
import { Wildcard, type WorkBudget } from './wildcards';

/** What a rule matches values by, other than one exact value or the key alone. */
export type Matcher = Wildcard | ValueList | Network | ValueRegex;

/** The values of `value_in`. */
export class ValueList {
  constructor(readonly values: readonly string[]) {}
}

/**
 * Looking at one character with so many instructions takes up to a hundred times as long as one step where no states of
 * the program can be kept, and mostly less than one.
 */
const INSTRUCTIONS_PER_STEP = 32;

/** The regular expression of `value_regex`, searched in the whole value. */
export class ValueRegex {
  readonly #pattern: Re2.Re2Pattern;
  readonly #stepsPerCharacter: number;
  /** How many instructions its program has. */
  readonly size: number;

  /** @throws when it is not valid; the message is a phrase to follow a colon */
  constructor(source: string) {
    // Loads the library only for a rule that needs it.
    const { compileRe2 } = require('../text/re2') as typeof Re2;
    this.#pattern = compileRe2(source);
    this.size = this.#pattern.size;
    this.#stepsPerCharacter = this.size / INSTRUCTIONS_PER_STEP;
  }

  /** @throws TooMuchWork */
  matches(value: string, budget: WorkBudget): boolean {
    budget.spend(1 + value.length * this.#stepsPerCharacter);
    return this.#pattern.test(value);
  }
}

export type ConfiguredValue = Pick<RuleConfig, 'value' | 'valueIn' | 'valueCidr' | 'valueRegex'>;

/** Undefined for a rule with one exact value, or for the key alone. */
export function matcherOf({ value, valueIn, valueCidr, valueRegex }: ConfiguredValue): Matcher | undefined {
  if (valueIn !== undefined) return new ValueList(valueIn);
  if (valueCidr !== undefined) return Network.parse(valueCidr);
  if (valueRegex !== undefined) return new ValueRegex(valueRegex);
  return value.includes('*') ? new Wildcard(value) : undefined;
}

/** Most characters of a list of values in a text, which has the first values of a longer one. */
const LONGEST_LIST = 64;

/**
 * What a rule matches as one text, for names of statistics, for messages, and for the keys of counters that all of its
 * values share. Empty for the key alone. Lists of one level differ in it, because a value is in one of them only, and
 * so their first values differ.
 */
export function valueText({ value, valueIn, valueCidr, valueRegex }: ConfiguredValue): string {
  if (valueIn === undefined) return valueCidr ?? valueRegex ?? value;
  const sorted = valueIn.toSorted();
  let [text = ''] = sorted;
  for (const [index, next] of sorted.entries()) {
    if (index === 0) continue;
    if (text.length + 1 + next.length > LONGEST_LIST) return `${text},+${sorted.length - index}`;
    text += `,${next}`;
  }
  return text;
}

/** Whether a rule is for the key alone, with any value. */
export function isForAnyValue(rule: ConfiguredValue): boolean {
  return valueText(rule) === '';
}

/** A rule that matches by a list, a network or a regular expression. */
interface MatcherRule {
  readonly value: string;
  readonly matcher: Matcher | undefined;
}

/** The rules of one key that match by a list, a network or a regular expression. */
export class MatcherRules<T extends MatcherRule> {
  /** By their names, in the order of the file. */
  readonly rules = new Map<string, T>();
  readonly #networks = new NetworkTable<T>();
  /** In the order of the file. */
  readonly regexes: T[] = [];
  /** How many values their lists have. */
  listedValues = 0;

  /** @returns false, without effect, when there is already one of this name */
  add(rule: T): boolean {
    const { matcher } = rule;
    const name = nameOf(rule);
    if (this.rules.has(name)) return false;
    this.rules.set(name, rule);
    if (matcher instanceof ValueList) this.listedValues += matcher.values.length;
    else if (matcher instanceof Network) this.#networks.add(matcher, rule);
    else this.regexes.push(rule);
    return true;
  }

  /** The rule that has the same kind of matcher and the same text. */
  counterpart(rule: MatcherRule): T | undefined {
    return this.rules.get(nameOf(rule));
  }

  /** @throws TooMuchWork */
  findNetwork(value: string, budget: WorkBudget): T | undefined {
    return this.#networks.find(value, budget);
  }

  /** @throws TooMuchWork */
  findRegex(value: string, budget: WorkBudget): T | undefined {
    return this.regexes.find(({ matcher }) => matcher instanceof ValueRegex && matcher.matches(value, budget));
  }
}

function nameOf({ value, matcher }: MatcherRule): string {
  return `${matcher?.constructor.name} ${value}`;
}
