import { hideAddressCredentials } from '../../text/hide-credentials';
import { messageOf } from '../../text/thrown';
import { type Setting, namesOf } from '../table/setting';
import { type Environment, type Variable, lookUp } from './environment';
import {
  type ReadSecretFile,
  type SecretFile,
  describeFile,
  fileNamesOf,
  readSecret,
  readsNoFiles,
} from './secret-file';

const MAX_SHOWN_LENGTH = 120;

/** One setting, read from the environment. */
export interface ParsedVariable<Value> {
  /** The variable that sets it; undefined when it is not set. */
  readonly givenAs: string | undefined;
  /** The file that contains it, if it is a secret from a file. */
  readonly file?: SecretFile<Value>;
  /** Undefined when it is not set or invalid. */
  readonly value: Value | undefined;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

type Readable<Value> = Pick<Setting<string, Value>, 'name' | 'alias' | 'type' | 'secret'>;

/**
 * Reads a setting under its name and its alias. Both may be set if they have the same value. A secret may be in a file instead,
 * which another variable names.
 */
export function readVariable<Value>(
  environment: Environment,
  setting: Readable<Value>,
  readFile: ReadSecretFile = readsNoFiles,
): ParsedVariable<Value> {
  const variables = lookUp(environment, namesOf(setting));
  const files = lookUp(environment, fileNamesOf(setting));
  const [variable] = variables;
  const [file] = files;
  if (file === undefined) return readVariables(variables, setting);
  if (variable !== undefined) return invalid(file, bothGiven(variable, file));
  if (files.some(({ text }) => text !== file.text)) return invalid(file, differentValues(files.map(showFile)));
  return readFrom({ setting, variable: file.name, path: file.text }, readFile);
}

function readVariables<Value>(variables: readonly Variable[], setting: Readable<Value>): ParsedVariable<Value> {
  const { type, secret } = setting;
  const problems: string[] = [];
  const warnings: string[] = [];
  const values: Value[] = [];
  for (const variable of variables) {
    const result = type.parse(variable.text);
    const shown = showVariable(variable, secret);
    if ('value' in result) {
      values.push(result.value);
      if (result.notice !== undefined) warnings.push(`${shown}: ${result.notice}.`);
    } else {
      const hint = result.hint === undefined ? '' : ` (${result.hint})`;
      problems.push(`${shown} is invalid; allowed: ${type.allowed}${hint}.`);
    }
  }
  if (new Set(values.map((value) => type.format(value))).size > 1) {
    problems.push(differentValues(variables.map((variable) => showVariable(variable, secret))));
  }
  return { givenAs: variables[0]?.name, value: problems.length > 0 ? undefined : values[0], problems, warnings };
}

function readFrom<Value>(file: SecretFile<Value>, readFile: ReadSecretFile): ParsedVariable<Value> {
  const { variable, path } = file;
  try {
    const { value, notice } = readSecret(file, readFile);
    const warnings = notice === undefined ? [] : [`${describeFile(file)}: ${notice}.`];
    return { givenAs: variable, file, value, problems: [], warnings };
  } catch (error) {
    return invalid({ name: variable, text: path }, `cannot use ${describeFile(file)}: ${messageOf(error)}.`);
  }
}

function invalid({ name }: Variable, problem: string): ParsedVariable<never> {
  return { givenAs: name, value: undefined, problems: [problem], warnings: [] };
}

function bothGiven({ name }: Variable, { name: file }: Variable): string {
  return `${name} and ${file} are both set; remove ${name} to use the file, or ${file} to use the variable.`;
}

function differentValues(shown: readonly string[]): string {
  return `${shown.join(' and ')} are two names of one setting and have different values; remove one of them.`;
}

function showFile({ name, text }: Variable): string {
  return describeFile({ variable: name, path: text });
}

/** A variable and its text for a message: without secrets, on one line and truncated. */
function showVariable({ name, text }: Variable, secret: Setting['secret']): string {
  if (secret === 'value') return `${name} (secret value)`;
  // A URL may have been set by mistake where the setting expects something else.
  const safe = secret === 'credentials' || text.includes('://') ? hideAddressCredentials(text) : text;
  return `${name}=${JSON.stringify(safe.length > MAX_SHOWN_LENGTH ? `${safe.slice(0, MAX_SHOWN_LENGTH)}…` : safe)}`;
}
