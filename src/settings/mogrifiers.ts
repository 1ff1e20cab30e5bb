import type { Environment } from './variables/environment';
import { readVariable } from './variables/read-variable';
import { type Pairs, pairs } from './values/lists';
import { text } from './values/text';
import type { ValueType } from './values/value-type';

/** A rule that turns a statistic's name into another name with tags. */
export interface Mogrifier {
  /** As TAGGEDSTATS_MOGRIFIERS has it, in upper case. */
  readonly name: string;
  /** A regular expression in the syntax of RE2, not anchored. */
  readonly pattern: string;
  /** The name to send; `$n` stands for a group of the pattern. */
  readonly output: string;
  /** The tags to send; values may hold `$n`. */
  readonly tags: Pairs;
}

const NAME = 'TAGGEDSTATS_MOGRIFIER_';
const ALIAS = 'DOG_STATSD_MOGRIFIER_';

const VARIABLE = new RegExp(`^(?:${NAME}|${ALIAS})(?<name>.+)_(?:PATTERN|NAME|TAGS)$`);

const tags = pairs({ separator: ':', emptyValues: 'rejected' });

export interface MogrifiersResult {
  readonly mogrifiers: readonly Mogrifier[];
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Reads the variables of the mogrifiers named. The Go service falls back to variables called PATTERN, NAME and TAGS; this is
 * an accident of a library that nobody can mean, and is left out.
 */
export function readMogrifiers(environment: Environment, names: readonly string[]): MogrifiersResult {
  const problems: string[] = [];
  const warnings: string[] = [];

  function read<Value>(variable: string, type: ValueType<Value>) {
    const reading = readVariable(environment, { name: NAME + variable, alias: ALIAS + variable, type });
    problems.push(...reading.problems);
    warnings.push(...reading.warnings);
    return reading;
  }
  function requirePart(mogrifier: string, part: 'PATTERN' | 'NAME') {
    const variable = `${mogrifier}_${part}`;
    const { givenAs, value } = read(variable, text());
    if (givenAs === undefined) {
      problems.push(`${NAME}${variable} is not set, but TAGGEDSTATS_MOGRIFIERS names ${mogrifier}.`);
    }
    return value ?? '';
  }

  const listed = names.map((name) => name.toUpperCase());
  const mogrifiers = listed.map((name) => ({
    name,
    pattern: requirePart(name, 'PATTERN'),
    output: requirePart(name, 'NAME'),
    tags: read(`${name}_TAGS`, tags).value ?? {},
  }));

  for (const variable of Object.keys(environment)) {
    const name = VARIABLE.exec(variable)?.groups?.['name'];
    if (name !== undefined && !listed.includes(name)) {
      warnings.push(`${variable} has no effect: TAGGEDSTATS_MOGRIFIERS does not name ${name}.`);
    }
  }
  return { mogrifiers, problems, warnings };
}
