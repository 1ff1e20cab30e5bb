import { messageOf } from '../text/thrown';
import type * as Re2 from '../text/re2';
import { aliasOf } from './table/setting';
import { type Pairs, mogrifierTags } from './values/lists';
import { type ValueType, anyText } from './values/value-type';
import { type Environment, type Reading, lookUp, readVariable } from './variables';

/** A rule that rewrites the name of a statistic into another name with tags. */
export interface Mogrifier {
  /** The name of the mogrifier in TAGGEDSTATS_MOGRIFIERS, in upper case. */
  readonly name: string;
  /** A regular expression in RE2 syntax, not anchored. */
  readonly pattern: string;
  /** The variable that contains the pattern. */
  readonly patternVariable: string;
  /** The name to send; `$n` is replaced with capture group n of the pattern. */
  readonly output: string;
  /** The tags to send; `$n` in a value is replaced likewise. */
  readonly tags: Pairs;
}

const VARIABLE = /^(?:TAGGEDSTATS|DOG_STATSD)_MOGRIFIER_(?<name>.+)_(?:PATTERN|NAME|TAGS)$/;

/**
 * Reads the variables of the listed mogrifiers. The fallback of the Go service to variables named PATTERN, NAME and
 * TAGS, an accident of a library, is not supported.
 *
 * @param listName the variable that lists the names, for messages
 */
export function readMogrifiers(names: readonly string[], listName: string, reading: Reading): readonly Mogrifier[] {
  function read<Value>(name: string, type: ValueType<Value>) {
    return readVariable({ name, alias: aliasOf(name), type }, reading);
  }
  function readRequired(mogrifier: string, part: 'PATTERN' | 'NAME') {
    const name = `TAGGEDSTATS_MOGRIFIER_${mogrifier}_${part}`;
    const { givenAs, value = '' } = read(name, anyText());
    // The names of one program, as in the list.
    const variable = givenAs ?? (listName.startsWith('USE_') ? aliasOf(name) : name) ?? name;
    if (givenAs === undefined) {
      reading.problems.push(
        `${variable} is not set, but ${listName} contains ${mogrifier}; set the variable, or remove ` +
          `${mogrifier} from ` +
          'the list.',
      );
    }
    return { value, variable };
  }

  const listed = names.map((name) => name.toUpperCase());
  const mogrifiers = listed.map((name) => {
    const pattern = readRequired(name, 'PATTERN');
    checkPattern(pattern, reading.problems);
    return {
      name,
      pattern: pattern.value,
      patternVariable: pattern.variable,
      output: readRequired(name, 'NAME').value,
      tags: read(`TAGGEDSTATS_MOGRIFIER_${name}_TAGS`, mogrifierTags).value ?? {},
    };
  });
  for (const variable of mogrifierVariables(reading.environment)) {
    const name = mogrifierOf(variable);
    if (name === undefined || listed.includes(name)) continue;
    reading.warnings.push(
      `${variable} has no effect, because ${listName} does not contain ${name}; add ${name} to the ` +
        'list, or remove the ' +
        'variable.',
    );
  }
  return mogrifiers;
}

/** Loads the library of the patterns only where there are some. */
function checkPattern(
  { value, variable }: { readonly value: string; readonly variable: string },
  problems: string[],
): void {
  try {
    (require('../text/re2') as typeof Re2).compileRe2(value);
  } catch (error) {
    problems.push(`${variable} is not a valid regular expression: ${messageOf(error)}.`);
  }
}

/** The variables of mogrifiers that are set, listed or not. */
export function mogrifierVariables(environment: Environment): readonly string[] {
  const names = Object.keys(environment).filter((name) => mogrifierOf(name) !== undefined);
  return lookUp(environment, names).map(({ name }) => name);
}

/** The name of the mogrifier to which a variable belongs; undefined for other variables. */
export function mogrifierOf(variable: string): string | undefined {
  return VARIABLE.exec(variable)?.groups?.['name'];
}
