import { hideAddressCredentials } from '../../text/hide-credentials';
import { type Setting, namesOf } from '../table/setting';
import { type Environment, type Variable, lookUp } from './environment';

const MAX_SHOWN_LENGTH = 120;

/** One setting, read from the environment. */
export interface ParsedVariable<Value> {
  /** The variable that sets it; undefined when it is not set. */
  readonly givenAs: string | undefined;
  /** Undefined when it is not set or invalid. */
  readonly value: Value | undefined;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

type Readable<Value> = Pick<Setting<string, Value>, 'name' | 'alias' | 'type' | 'secret'>;

/** Reads a setting under its name and its alias. Both may be set if they have the same value. */
export function readVariable<Value>(environment: Environment, setting: Readable<Value>): ParsedVariable<Value> {
  const { type, secret } = setting;
  const problems: string[] = [];
  const warnings: string[] = [];
  const values: Value[] = [];
  const variables = lookUp(environment, namesOf(setting));
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
    const both = variables.map((variable) => showVariable(variable, secret)).join(' and ');
    problems.push(`${both} are two names of one setting and have different values; remove one of them.`);
  }
  return { givenAs: variables[0]?.name, value: problems.length > 0 ? undefined : values[0], problems, warnings };
}

/** A variable and its text for a message: without secrets, on one line and truncated. */
function showVariable({ name, text }: Variable, secret: Setting['secret']): string {
  if (secret === 'value') return `${name} (secret value)`;
  // A URL may have been set by mistake where the setting expects something else.
  const safe = secret === 'credentials' || text.includes('://') ? hideAddressCredentials(text) : text;
  return `${name}=${JSON.stringify(safe.length > MAX_SHOWN_LENGTH ? `${safe.slice(0, MAX_SHOWN_LENGTH)}…` : safe)}`;
}
