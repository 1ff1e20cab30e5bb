import { checks } from './checks';
import { readMogrifiers } from './mogrifiers';
import { type ServiceManager, readServiceManager } from './service-manager';
import type { Field, Settings, SettingsView } from './settings';
import { type SettingState, findUnmet } from './table/condition';
import { TAGGED_OUTPUT } from './table/outputs';
import { DerivedDefault } from './table/setting';
import { type TableRow, settingRows } from './table/settings-table';
import {
  type Environment,
  type ReadSecretFile,
  type Reading,
  type SecretFile,
  readSecret,
  readVariable,
  readsNoFiles,
} from './variables';
import { findIneffective } from './warnings';

/** The environment contains invalid settings. The message lists all of them and contains no secrets. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';

  /**
   * @param problems one sentence for each
   * @param logFormat the format in which to report them: LOG_FORMAT
   */
  constructor(
    readonly problems: readonly string[],
    readonly logFormat: Settings['logFormat'],
  ) {
    super(['The settings are invalid (weir --help describes them):', ...problems].join('\n  '));
  }
}

/** Finds what is wrong with settings outside of them: one sentence each. */
export type Inspect = (view: SettingsView) => {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
};

export interface LoadedSettings {
  readonly settings: Settings;
  /** The settings that the environment sets, each with its variable; all others have their defaults. */
  readonly given: ReadonlyMap<Field, string>;
  /** The settings whose values are in files. */
  readonly files: ReadonlyMap<Field, SecretFile>;
  /**
   * The value of a setting as it is now: that of its file, if it is in one.
   *
   * @throws Error that says why the file cannot be used, and contains nothing of it
   */
  readonly readAgain: <F extends Field>(field: F) => Settings[F];
  /** The variable that sets a setting, or else its neutral name: for messages about the setting. */
  readonly nameOf: SettingsView['nameOf'];
  /** What a service manager has put into the environment. */
  readonly manager: ServiceManager;
  /** Warnings for the log, one sentence each, without secrets. */
  readonly warnings: readonly string[];
  /** Variables without an effect that need no warning, because deployments made for the Go service set them anyway. */
  readonly ignored: readonly string[];
}

/** The rows by their fields and by their neutral names. */
const rows = new Map(settingRows.flatMap((row) => [[row.field, row] as const, [row.name, row] as const]));

function rowOf(fieldOrName: string): TableRow {
  const row = rows.get(fieldOrName);
  if (row === undefined) throw new Error(`the settings table has no row ${fieldOrName}`);
  return row;
}

/**
 * Reads the settings of the table from environment variables. Names are case-sensitive. Unknown variables are ignored,
 * except that one which is probably meant as a setting causes a warning.
 *
 * @param readFile reads the files of secrets, now and when they are read again
 * @param inspect finds what the settings alone do not show: files that cannot be used, and more than the machine has
 * @throws {SettingsError} listing all problems: invalid values, files that cannot be used, names and aliases with
 *   different values, and settings that contradict each other.
 */
export function readSettings(
  environment: Environment,
  readFile: ReadSecretFile = readsNoFiles,
  inspect: Inspect = () => ({ problems: [], warnings: [] }),
): LoadedSettings {
  const reading: Reading = { environment, readFile, problems: [], warnings: [] };
  const { values, given, files, invalid } = readRows(reading);
  function nameOf(field: Field): string {
    return given.get(field) ?? rowOf(field).name;
  }
  function stateOf(name: string): SettingState {
    const { field, type } = rowOf(name);
    // A default that follows from another one of that kind may come before it.
    const present = values[field];
    if (present instanceof DerivedDefault) values[field] = present.derive(stateOf);
    const value = values[field] === undefined ? undefined : type.format(values[field]);
    return { variable: nameOf(field), isGiven: given.has(field), isValid: !invalid.has(field), value };
  }
  for (const [field, value] of Object.entries(values)) {
    if (value instanceof DerivedDefault) values[field] = value.derive(stateOf);
  }
  // The type is derived from the rows, so every field has a value of its type, except for the mogrifiers, which are
  // filled in next.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const settings = values as unknown as Settings;
  const hasMogrifiers = !invalid.has('taggedstatsMogrifiers') && findUnmet([TAGGED_OUTPUT], stateOf) === undefined;
  values['mogrifiers'] = hasMogrifiers
    ? readMogrifiers(settings.taggedstatsMogrifiers, nameOf('taggedstatsMogrifiers'), reading)
    : [];
  function hasEffect(field: Field): boolean {
    return rowOf(field).conditions.every(({ names, failure }) => {
      return names.every((name) => stateOf(name).isValid) && failure(stateOf) === undefined;
    });
  }
  function isUsed(field: Field): boolean {
    return given.has(field) && !invalid.has(field) && hasEffect(field);
  }
  const view: SettingsView = { settings, nameOf, hasEffect, isUsed };
  const outside = inspect(view);
  reading.problems.push(...contradictions(view, invalid), ...outside.problems);
  reading.warnings.push(...outside.warnings);
  const manager = readServiceManager(environment, process.pid, reading.problems);
  if (reading.problems.length > 0) throw new SettingsError(reading.problems, settings.logFormat);
  const { warnings, ignored } = findIneffective({ environment, stateOf, manager });
  function readAgain<F extends Field>(field: F): Settings[F] {
    const file = files.get(field);
    if (file === undefined) return settings[field];
    // The type of the row is that of the field.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return deepFreeze(readSecret(file, readFile).value) as Settings[F];
  }
  return {
    ...{ settings: deepFreeze(settings), given, files, readAgain, nameOf, manager },
    ...{ warnings: [...reading.warnings, ...warnings], ignored },
  };
}

/** Reads each row by itself. An invalid setting gets its default, so that the other settings can still be checked. */
function readRows(reading: Reading) {
  const values: Record<string, unknown> = {};
  const given = new Map<Field, string>();
  const files = new Map<Field, SecretFile>();
  const invalid = new Set<Field>();
  for (const row of settingRows) {
    const { givenAs, file, value } = readVariable(row, reading);
    if (givenAs !== undefined) given.set(row.field, givenAs);
    if (file !== undefined) files.set(row.field, file);
    if (givenAs !== undefined && value === undefined) invalid.add(row.field);
    values[row.field] = value ?? row.default;
  }
  return { values, given, files, invalid };
}

/**
 * What the checks find. One that reads an invalid setting finds nothing: it would judge a default that the user does
 * not want.
 */
function contradictions(view: SettingsView, invalid: ReadonlySet<Field>): readonly string[] {
  const unreadable = new Error('the setting is invalid');
  const settings = new Proxy(view.settings, {
    get(target, field) {
      if (invalid.has(field as Field)) throw unreadable;
      return Reflect.get(target, field) as unknown;
    },
  });
  return checks.flatMap((find) => {
    try {
      return find({ ...view, settings }) ?? [];
    } catch (error) {
      if (error !== unreadable) throw error;
      return [];
    }
  });
}

/** Freezes a value that consists of plain objects and arrays, recursively. */
function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}
