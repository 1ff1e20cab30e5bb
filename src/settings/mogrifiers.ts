import { type Environment, lookUp } from './variables/environment';
import { readVariable } from './variables/read-variable';
import { type Pairs, pairs } from './values/lists';
import { text } from './values/text';
import type { ValueType } from './values/value-type';

/** A rule that rewrites the name of a statistic into another name with tags. */
export interface Mogrifier {
  /** Its name in TAGGEDSTATS_MOGRIFIERS, in upper case. */
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

const NAME = 'TAGGEDSTATS_MOGRIFIER_';
const ALIAS = 'DOG_STATSD_MOGRIFIER_';

const VARIABLE = new RegExp(`^(?:${NAME}|${ALIAS})(?<name>.+)_(?:PATTERN|NAME|TAGS)$`);

/** The type of the variable with the tags. */
export const mogrifierTags = pairs({ separator: ':', emptyValues: 'rejected' });

export interface MogrifiersResult {
  readonly mogrifiers: readonly Mogrifier[];
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Reads the variables of the listed mogrifiers. The fallback of the Go service to variables named PATTERN, NAME and TAGS, an
 * accident of a library, is not supported.
 *
 * @param listName the variable that lists the names, for messages
 */
export function readMogrifiers(environment: Environment, names: readonly string[], listName: string): MogrifiersResult {
  const problems: string[] = [];
  const warnings: string[] = [];

  function read<Value>(variable: string, type: ValueType<Value>) {
    const result = readVariable(environment, { name: NAME + variable, alias: ALIAS + variable, type });
    problems.push(...result.problems);
    warnings.push(...result.warnings);
    return result;
  }
  function readRequired(mogrifier: string, part: 'PATTERN' | 'NAME') {
    const { givenAs, value = '' } = read(`${mogrifier}_${part}`, text());
    // The names of one program, as in the list.
    const variable = givenAs ?? `${listName.startsWith('USE_') ? ALIAS : NAME}${mogrifier}_${part}`;
    if (givenAs === undefined) {
      problems.push(
        `${variable} is not set, but ${listName} contains ${mogrifier}; set the variable, or remove ${mogrifier} from ` +
          'the list.',
      );
    }
    return { value, variable };
  }

  const listed = names.map((name) => name.toUpperCase());
  const mogrifiers = listed.map((name) => {
    const pattern = readRequired(name, 'PATTERN');
    return {
      name,
      pattern: pattern.value,
      patternVariable: pattern.variable,
      output: readRequired(name, 'NAME').value,
      tags: read(`${name}_TAGS`, mogrifierTags).value ?? {},
    };
  });

  for (const variable of mogrifierVariables(environment)) {
    const name = nameIn(variable);
    if (name !== undefined && !listed.includes(name)) {
      warnings.push(
        `${variable} has no effect, because ${listName} does not contain ${name}; add ${name} to the list, or remove the ` +
          'variable.',
      );
    }
  }
  return { mogrifiers, problems, warnings };
}

/** The variables of mogrifiers that are set, listed or not. */
export function mogrifierVariables(environment: Environment): readonly string[] {
  const names = Object.keys(environment).filter((variable) => nameIn(variable) !== undefined);
  return lookUp(environment, names).map(({ name }) => name);
}

/** The name of the mogrifier to which a variable belongs; undefined for other variables. */
function nameIn(variable: string): string | undefined {
  return VARIABLE.exec(variable)?.groups?.['name'];
}
