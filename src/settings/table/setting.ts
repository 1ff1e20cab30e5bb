import type { ValueType } from '../values/value-type';

/** The default of a setting that follows from other settings: `chosen-defaults.ts` works it out, `text` says how. */
export class DerivedDefault {
  constructor(readonly text: string) {}
}

/** One row of the table of settings. `Value` is what the variable is read into, `Default` what stands in for it. */
export interface Setting<Field extends string = string, Value = unknown, Default = unknown> {
  /** The setting's place in the typed object: its name in camel case. */
  readonly field: Field;
  /** The variable's neutral name, as in document 1. */
  readonly name: string;
  /** The name that the Go service uses, where it is another. */
  readonly alias?: string;
  readonly type: ValueType<Value>;
  /** Undefined: without the variable there is no value. */
  readonly default: Default;
  /** How the default reads, where its value does not say it. */
  readonly defaultText?: string;
  /**
   * What a message must not show: the `value`, or the `credentials` of an address.
   */
  readonly secret?: 'value' | 'credentials';
  /** One line of help. */
  readonly help: string;
  /** The feature that this setting belongs to and that a later release brings: until then it is read, checked and warned about. */
  readonly plannedFeature?: string;
  /** Values, as written, that ask for a feature of a later release: refused, since going on without it would be wrong. */
  readonly plannedValues?: Readonly<Record<string, string>>;
}

/** Variables that share a form; what `<NAME>` may stand for, another setting says. */
export interface SettingFamily {
  readonly name: string;
  readonly alias: string;
  readonly allowed: string;
  readonly defaultText: string;
  readonly help: string;
}

/** Settings about one thing: a heading of the help text and of the README. */
export interface SettingGroup<Settings extends readonly Setting[] = readonly Setting[]> {
  readonly title: string;
  /** A sentence under the heading. */
  readonly note?: string;
  /** As {@link Setting.plannedFeature}, for the whole group. */
  readonly plannedFeature?: string;
  readonly settings: Settings;
  readonly families?: readonly SettingFamily[];
}

/** The type of a setting's value in the typed object. */
export type ValueOf<Row> =
  Row extends Setting<string, infer Value, infer Default>
    ? undefined extends Default
      ? Value | undefined
      : Value
    : never;

/** States a row, so that the compiler keeps its field's name and its value's type. */
export function setting<
  const Field extends string,
  Value,
  const Default extends NoInfer<Value> | DerivedDefault | undefined,
>(row: Setting<Field, Value, Default>): Setting<Field, Value, Default> {
  return row;
}

/** States a group, so that the compiler keeps its rows. */
export function group<const Settings extends readonly Setting[]>(rows: SettingGroup<Settings>): SettingGroup<Settings> {
  return rows;
}

/** States that a default follows from other settings, and how. */
export function derived(text: string): DerivedDefault {
  return new DerivedDefault(text);
}
