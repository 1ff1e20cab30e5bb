import { prose } from '../../text/prose';
import type { ValueType } from '../values/value-type';
import type { Condition, StateOf } from './condition';

/** One row of the settings table. `Value` is the type of the parsed variable, `Default` the type of the default. */
export interface Setting<Field extends string = string, Value = unknown, Default = unknown> {
  /** The field of {@link Settings}: the neutral name in camel case. */
  readonly field: Field;
  /** The neutral name of the environment variable. */
  readonly name: string;
  /** The name of the variable in the Go service, where it differs. */
  readonly alias: string | undefined;
  readonly type: ValueType<Value>;
  /** Undefined: without the variable there is no value. */
  readonly default: Default;
  /**
   * The conditions, all of them, under which the setting has an effect. When one does not hold, setting it is warned
   * about.
   */
  readonly requires: readonly Condition[];
  /** Accepted for compatibility with existing environments, but without effect. */
  readonly isDeprecated?: true;
  /** One line of help. */
  readonly help: string;
}

/**
 * A default that is described by `text`: it follows from other settings, which have no such default themselves, or is
 * left to the user of the setting.
 */
export class DerivedDefault<Value = unknown> {
  constructor(
    readonly text: string,
    readonly derive: (stateOf: StateOf) => Value,
  ) {}
}

/** Declares a default that follows from other settings; the compiler infers the words that it may be. */
export function derived<Value extends string | boolean>(text: string, derive: (stateOf: StateOf) => Value) {
  return new DerivedDefault(text, derive);
}

/** Declares that there is no value without the variable, and what happens then. */
export function noDefault(text: string): DerivedDefault<undefined> {
  return new DerivedDefault(text, () => undefined);
}

/** The type of a setting's value in {@link Settings}. */
export type ValueOf<Row> =
  Row extends Setting<string, infer Value, infer Default>
    ? Default extends undefined | DerivedDefault<undefined>
      ? Value | undefined
      : Value
    : never;

/** A name of a variable in camel case: `kvstorePoolSize` for `KVSTORE_POOL_SIZE`. */
type FieldOf<Name extends string> = Uncapitalize<PascalCase<Name>>;

type PascalCase<Name extends string> = Name extends `${infer Word}_${infer Rest}`
  ? `${Capitalize<Lowercase<Word>>}${PascalCase<Rest>}`
  : Capitalize<Lowercase<Name>>;

function fieldOf<const Name extends string>(name: Name): FieldOf<Name> {
  const field = name.toLowerCase().replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same rule as that of the type
  return field as FieldOf<Name>;
}

type DefaultOf<Value> = NoInfer<Value> | DerivedDefault<NoInfer<Value> | undefined> | undefined;

/**
 * Declares a row: its name, type, default and conditions, and as a template the help, whose line breaks count as
 * blanks. The compiler infers the name of its field and the type of its value.
 */
// oxlint-disable-next-line max-params -- a row is read from left to right, like a line of docs/settings.md
export function setting<const Name extends string, Value, const Default extends DefaultOf<Value>>(
  name: Name,
  type: ValueType<Value>,
  defaultValue: Default,
  ...requires: readonly Condition[]
) {
  return (texts: TemplateStringsArray, ...parts: readonly string[]): Setting<FieldOf<Name>, Value, Default> => {
    const help = prose(texts, parts);
    return { field: fieldOf(name), name, alias: aliasOf(name), type, default: defaultValue, requires, help };
  };
}

export function deprecated<Row extends Setting>(row: Row): Row {
  return { ...row, isDeprecated: true };
}

/** How names begin here and in the Go service; a whole name comes before the beginnings of others. */
const ALIASES = [
  ['LOCAL_CACHE_SIZE_IN_BYTES', 'LocalCacheSizeInBytes'],
  ['TAGGEDSTATS_MOGRIFIERS', 'USE_DOG_STATSD_MOGRIFIERS'],
  ['TAGGEDSTATS_', 'DOG_STATSD_'],
  ['USE_TAGGEDSTATS', 'USE_DOG_STATSD'],
  ['USE_PUSHSTATS', 'USE_STATSD'],
  ['USE_PULLMETRICS', 'USE_PROMETHEUS'],
  ['PUSHSTATS_', 'STATSD_'],
  ['PULLMETRICS_', 'PROMETHEUS_'],
  ['KVSTORE_', 'REDIS_'],
  ['PLAINCACHE_', 'MEMCACHE_'],
] as const;

/** The name of a variable in the Go service, where it differs. */
export function aliasOf(name: string): string | undefined {
  const found = ALIASES.find(([beginning]) => name.startsWith(beginning));
  return found === undefined ? undefined : found[1] + name.slice(found[0].length);
}

/** The names of a setting's variable: its neutral name and its alias, if any. */
export function namesOf({ name, alias }: Pick<Setting, 'name' | 'alias'>): readonly string[] {
  return alias === undefined ? [name] : [name, alias];
}

/** The variables that name the file of a secret: none for other settings. */
export function fileNamesOf(row: Pick<Setting, 'name' | 'alias' | 'type'>): readonly string[] {
  return row.type.secret === undefined ? [] : namesOf(row).map((name) => `${name}_FILE`);
}

/** Settings of one topic: one heading in the help text and in docs/settings.md. */
export interface SettingGroup<Rows extends readonly Setting[] = readonly Setting[]> {
  readonly title: string;
  /** A remark below the heading. */
  readonly note?: string;
  /** As {@link Setting.requires}, for all settings of the group except those that a condition names. */
  readonly requires?: readonly Condition[];
  readonly settings: Rows;
  /** Variables with a common name pattern; another setting lists the values of `<NAME>`. */
  readonly families?: readonly Setting[];
}

/** Declares a group; the compiler infers the types of its rows. */
export function group<const Rows extends readonly Setting[]>(rows: SettingGroup<Rows>): SettingGroup<Rows> {
  return rows;
}
