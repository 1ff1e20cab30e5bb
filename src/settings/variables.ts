import { hideAddressCredentials } from '../text/hide-credentials';
import { messageOf } from '../text/thrown';
import { type Setting, fileNamesOf, namesOf } from './table/setting';
import type { Accepted, Rejected, ValueType } from './values/value-type';

/** Variables by name, like `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable that is set; its text is trimmed. */
export interface Variable {
  readonly name: string;
  readonly text: string;
}

/** The variables among `names` that are set. An empty or blank variable counts as not set. */
export function lookUp(environment: Environment, names: readonly string[]): Variable[] {
  return names.flatMap((name) => {
    const text = environment[name]?.trim() ?? '';
    return text === '' ? [] : [{ name, text }];
  });
}

/** What is needed to read a setting. */
type Readable<Value = unknown> = Pick<Setting<string, Value>, 'name' | 'alias' | 'type'>;

/** A setting whose value is in a file. */
export interface SecretFile<Value = unknown> {
  readonly setting: Readable<Value>;
  /** The variable that names the file. */
  readonly variable: string;
  readonly path: string;
}

/**
 * Reads the contents of a file with a secret.
 *
 * @throws Error whose message says why there is none: a sentence about the file, which it does not quote
 */
export type ReadSecretFile = (path: string, setting: Readable) => string;

/** For environments that name no files. */
export const readsNoFiles: ReadSecretFile = () => {
  throw new Error('files are not read here');
};

/**
 * The text of a setting in the contents of its file. An editor or a script may have added invisible blanks around it.
 */
export function textInFile({ type }: Pick<Setting, 'type'>, contents: string): string {
  return type.keepsBlanks === true ? contents : contents.trim();
}

/**
 * The value of a setting in the file, as it is now.
 *
 * @throws Error as {@link ReadSecretFile}, also for a text that is not a value of the setting
 */
export function readSecret<Value>({ setting, path }: SecretFile<Value>, readFile: ReadSecretFile): Accepted<Value> {
  const result = setting.type.parse(textInFile(setting, readFile(path, setting)));
  if ('value' in result) return result;
  throw new Error(`it must contain ${allowedIn(setting.type, result)}`);
}

/**
 * The variable with its file, for messages. What does not look like a path is not shown: it may be the secret itself.
 */
export function describeFile({ variable, path }: Pick<SecretFile, 'variable' | 'path'>): string {
  return /^\.{0,2}\//.test(path) ? `${variable}=${path}` : `${variable} (not shown: it does not begin with / or ./)`;
}

/** What settings are read from, and where their problems and warnings go: a sentence for each. */
export interface Reading {
  readonly environment: Environment;
  readonly readFile: ReadSecretFile;
  readonly problems: string[];
  readonly warnings: string[];
}

/** One setting, read from the environment. */
export interface ParsedVariable<Value> {
  /** The variable that sets it; undefined when it is not set. */
  readonly givenAs: string | undefined;
  /** The file that contains it, if it is a secret from a file. */
  readonly file?: SecretFile<Value>;
  /** Undefined when it is not set or invalid. */
  readonly value: Value | undefined;
}

/**
 * Reads a setting under its name and its alias. Both may be set if they have the same value. A secret may be in a file
 * instead, which another variable names.
 */
export function readVariable<Value>(setting: Readable<Value>, reading: Reading): ParsedVariable<Value> {
  const { environment, problems, warnings } = reading;
  const variables = lookUp(environment, namesOf(setting));
  const files = lookUp(environment, fileNamesOf(setting)).map(({ name, text }) => ({ variable: name, path: text }));
  const [name, named] = [variables[0]?.name, files[0]];
  if (named === undefined) return { givenAs: name, value: parseVariables(variables, setting.type, reading) };
  const givenAs = named.variable;
  function rejected(problem: string): ParsedVariable<Value> {
    problems.push(problem);
    return { givenAs, value: undefined };
  }
  if (name !== undefined) {
    const advice = `remove ${name} to use the file, or ${givenAs} to use the variable`;
    return rejected(`${name} and ${givenAs} are both set; ${advice}.`);
  }
  if (files.some(({ path }) => path !== named.path)) return rejected(differentValues(files.map(describeFile)));
  const file = { setting, ...named };
  try {
    const { value, notice } = readSecret(file, reading.readFile);
    if (notice !== undefined) warnings.push(`${describeFile(file)}: ${notice}.`);
    return { givenAs, file, value };
  } catch (error) {
    return rejected(`cannot use ${describeFile(file)}: ${messageOf(error)}.`);
  }
}

function parseVariables<Value>(variables: readonly Variable[], type: ValueType<Value>, reading: Reading) {
  const values: Value[] = [];
  for (const variable of variables) {
    const result = type.parse(variable.text);
    const shown = showVariable(variable, type);
    if ('value' in result) {
      values.push(result.value);
      if (result.notice !== undefined) reading.warnings.push(`${shown}: ${result.notice}.`);
    } else reading.problems.push(`${shown} is invalid; allowed: ${allowedIn(type, result)}.`);
  }
  if (new Set(values.map((value) => type.format(value))).size > 1) {
    reading.problems.push(differentValues(variables.map((variable) => showVariable(variable, type))));
    return undefined;
  }
  return values.length === variables.length ? values[0] : undefined;
}

function differentValues(shown: readonly string[]): string {
  return `${shown.join(' and ')} are two names of one setting and have different values; remove one of them.`;
}

/** The values that a type allows, with the hint at what is wrong with one. */
function allowedIn({ allowed }: ValueType<unknown>, { hint }: Rejected): string {
  return hint === undefined ? allowed : `${allowed} (${hint})`;
}

const MAX_SHOWN_LENGTH = 120;

/** A variable and its text for a message: without secrets, on one line and truncated. */
function showVariable({ name, text }: Variable, { secret }: Pick<ValueType<unknown>, 'secret'>): string {
  if (secret === 'value') return `${name} (secret value)`;
  // A URL may have been set by mistake where the setting expects something else.
  const safe = secret === 'credentials' || text.includes('://') ? hideAddressCredentials(text) : text;
  return `${name}=${JSON.stringify(safe.length > MAX_SHOWN_LENGTH ? `${safe.slice(0, MAX_SHOWN_LENGTH)}…` : safe)}`;
}
