import { type Environment, lookUp } from './environment';
import type { Setting } from '../table/setting';
import { showVariable } from './show-variable';

/** What the environment says about one setting. */
export interface VariableReading<Value> {
  /** The name it was given under; undefined when it is not set. */
  readonly givenAs: string | undefined;
  /** Undefined when it is not set, or set to something that cannot be used. */
  readonly value: Value | undefined;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

type Readable<Value> = Pick<Setting<string, Value>, 'name' | 'alias' | 'type' | 'secret'>;

/** Reads a setting under its name and its alias. Both may be set when they mean the same value. */
export function readVariable<Value>(environment: Environment, setting: Readable<Value>): VariableReading<Value> {
  const { name, alias, type, secret } = setting;
  const problems: string[] = [];
  const warnings: string[] = [];
  const values: Value[] = [];
  const variables = lookUp(environment, alias === undefined ? [name] : [name, alias]);
  for (const variable of variables) {
    const reading = type.read(variable.text);
    const shown = showVariable(variable, secret);
    if ('value' in reading) {
      values.push(reading.value);
      if (reading.notice !== undefined) warnings.push(`${shown}: ${reading.notice}.`);
    } else {
      const hint = reading.hint === undefined ? '' : ` (${reading.hint})`;
      problems.push(`${shown} cannot be used; allowed: ${type.allowed}${hint}.`);
    }
  }
  if (new Set(values.map((value) => type.write(value))).size > 1) {
    const both = variables.map((variable) => showVariable(variable, secret)).join(' and ');
    problems.push(`${both} are one setting with two different values; keep one of them.`);
  }
  return { givenAs: variables[0]?.name, value: problems.length > 0 ? undefined : values[0], problems, warnings };
}
