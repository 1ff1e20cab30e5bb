import type { Condition } from './condition';
import type { ValueType } from '../values/value-type';

/** The default of a setting that follows from other settings: computed in `derived-defaults.ts`, described by `text`. */
export class DerivedDefault {
  constructor(readonly text: string) {}
}

/** One row of the settings table. `Value` is the type of the parsed variable, `Default` the type of the default. */
export interface Setting<Field extends string = string, Value = unknown, Default = unknown> {
  /** The field of {@link Settings}: the neutral name in camel case. */
  readonly field: Field;
  /** The neutral name of the environment variable. */
  readonly name: string;
  /** The name of the variable in the Go service, where it differs. */
  readonly alias?: string;
  readonly type: ValueType<Value>;
  /** Undefined: without the variable there is no value. */
  readonly default: Default;
  /** Describes the default where the value does not. */
  readonly defaultText?: string;
  /** What messages must hide: the whole `value`, or the `credentials` in an address. */
  readonly secret?: 'value' | 'credentials';
  /** One line of help. */
  readonly help: string;
  /** The conditions, all of them, under which the setting has an effect. When one does not hold, setting it is warned about. */
  readonly requires?: readonly Condition[];
  /** Accepted for compatibility with existing environments, but without effect. */
  readonly isDeprecated?: true;
}

/** The names of a setting's variable: its neutral name and its alias, if any. */
export function namesOf({ name, alias }: Pick<Setting, 'name' | 'alias'>): readonly string[] {
  return alias === undefined ? [name] : [name, alias];
}

/** Variables with a common name pattern; another setting lists the values of `<NAME>`. */
export interface SettingFamily {
  readonly name: string;
  readonly alias: string;
  readonly allowed: string;
  readonly defaultText: string;
  /** As {@link Setting.requires}. */
  readonly requires: readonly Condition[];
  readonly help: string;
}

/** Settings of one topic: one heading in the help text and in docs/settings.md. */
export interface SettingGroup<Rows extends readonly Setting[] = readonly Setting[]> {
  readonly title: string;
  /** A remark below the heading. */
  readonly note?: string;
  /** As {@link Setting.requires}, for all settings of the group except those that a condition names. */
  readonly requires?: readonly Condition[];
  readonly settings: Rows;
  readonly families?: readonly SettingFamily[];
}

/** The type of a setting's value in {@link Settings}. */
export type ValueOf<Row> =
  Row extends Setting<string, infer Value, infer Default>
    ? undefined extends Default
      ? Value | undefined
      : Value
    : never;

/** Declares a row; the compiler infers the name of its field and the type of its value. */
export function setting<
  const Field extends string,
  Value,
  const Default extends NoInfer<Value> | DerivedDefault | undefined,
>(row: Setting<Field, Value, Default>): Setting<Field, Value, Default> {
  return row;
}

/** Declares a group; the compiler infers the types of its rows. */
export function group<const Rows extends readonly Setting[]>(rows: SettingGroup<Rows>): SettingGroup<Rows> {
  return rows;
}

/** Declares a default that follows from other settings; `text` says how. */
export function derived(text: string): DerivedDefault {
  return new DerivedDefault(text);
}
