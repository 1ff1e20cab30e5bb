import { VARIABLE_TOLERANCE, nearestName } from '../text/nearest-name';
import type { Check } from './checks/check';
import { listenerChecks } from './checks/listeners';
import { statisticsChecks } from './checks/statistics';
import { storeChecks } from './checks/stores';
import { tlsChecks } from './checks/tls';
import {
  type SettingStates,
  findIneffectiveSettings,
  findUnmetCondition,
  noEffect,
} from './checks/ineffective-settings';
import { derivedDefaults } from './derived-defaults';
import { type MogrifiersResult, mogrifierVariables, readMogrifiers } from './mogrifiers';
import { type ServiceManager, readServiceManager } from './service-manager';
import type { Field, Settings, SettingsView } from './settings';
import type { SettingState } from './table/condition';
import { DerivedDefault, type Setting, namesOf } from './table/setting';
import { settingsTable } from './table/settings-table';
import { TAGGED_OUTPUT } from './table/statistics-outputs';
import { type Environment, lookUp } from './variables/environment';
import { readVariable } from './variables/read-variable';
import { type ReadSecretFile, type SecretFile, fileNamesOf, readSecret, readsNoFiles } from './variables/secret-file';

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
    super(
      ['The settings are invalid (weir --help describes them):', ...problems.map((problem) => `  ${problem}`)].join(
        '\n',
      ),
    );
  }
}

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
}

const rows: readonly Setting<Field>[] = settingsTable.flatMap((group): readonly Setting<Field>[] => group.settings);
const neutralNames = new Map(rows.map(({ field, name }) => [field, name] as const));
const rowsByName = new Map(rows.map((row) => [row.name, row] as const));
const knownNames = new Set(rows.flatMap((row) => [...namesOf(row), ...fileNamesOf(row)]));

const problemChecks = [...tlsChecks, ...storeChecks, ...listenerChecks, ...statisticsChecks];

/**
 * Reads the settings of the table from environment variables. Names are case-sensitive. Unknown variables are ignored, except
 * that a variable whose name is close to that of a setting causes a warning.
 *
 * @param readFile reads the files of secrets, now and when they are read again
 * @throws {SettingsError} listing all problems: invalid values, files that cannot be used, names and aliases with different
 *   values, and settings that contradict each other.
 */
export function readSettings(environment: Environment, readFile: ReadSecretFile = readsNoFiles): LoadedSettings {
  const { values, given, files, invalid, problems, warnings } = readRows(environment, readFile);
  function isValid(field: string) {
    return !invalid.has(field);
  }

  // The type is derived from the rows, so every field has a value of its type, except for derived defaults and mogrifiers,
  // which are filled in next.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const settings = values as unknown as Settings;
  const view: SettingsView = {
    settings,
    isGiven: (field) => given.has(field),
    nameOf: (field) => given.get(field) ?? neutralNames.get(field) ?? field,
  };
  for (const [field, derive] of Object.entries<(view: SettingsView) => unknown>(derivedDefaults)) {
    if (values[field] instanceof DerivedDefault) values[field] = derive(view);
  }
  const states: SettingStates = {
    stateOf: (name) => stateOf(rowOf(name), view),
    isValid: (name) => isValid(rowOf(name).field),
  };
  const mogrifiers = isValid('taggedstatsMogrifiers') ? mogrifiersOf(environment, view, states) : NO_MOGRIFIERS;
  values['mogrifiers'] = mogrifiers.mogrifiers;

  function runChecks(checks: readonly Check[]) {
    return checks.filter(({ concerns }) => concerns.every(isValid)).flatMap(({ find }) => find(view) ?? []);
  }
  const { manager, problems: managerProblems } = readServiceManager(environment, process.pid);
  problems.push(...mogrifiers.problems, ...runChecks(problemChecks), ...managerProblems);
  warnings.push(
    ...mogrifiers.warnings,
    ...findIneffectiveSettings(settingsTable, states),
    ...findMisspelledNames(environment),
    ...findUnusedSockets(manager, settings),
  );

  if (problems.length > 0) throw new SettingsError(problems, settings.logFormat);
  function readAgain<F extends Field>(field: F): Settings[F] {
    const file = files.get(field);
    if (file === undefined) return settings[field];
    // The type of the row is that of the field.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return deepFreeze(readSecret(file, readFile).value) as Settings[F];
  }
  return { settings: deepFreeze(settings), given, files, readAgain, nameOf: view.nameOf, manager, warnings };
}

function rowOf(name: string): Setting<Field> {
  const row = rowsByName.get(name);
  if (row === undefined) throw new Error(`the settings table has no row ${name}`);
  return row;
}

function stateOf({ field, type }: Setting<Field>, { settings, isGiven, nameOf }: SettingsView): SettingState {
  const value: unknown = settings[field];
  return {
    variable: nameOf(field),
    isGiven: isGiven(field),
    value: value === undefined ? undefined : type.format(value),
  };
}

/** Reads each row by itself. An invalid setting gets its default, so that the other settings can still be checked. */
function readRows(environment: Environment, readFile: ReadSecretFile) {
  const values: Record<string, unknown> = {};
  const given = new Map<Field, string>();
  const files = new Map<Field, SecretFile>();
  const invalid = new Set<string>();
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const row of rows) {
    const variable = readVariable(environment, row, readFile);
    problems.push(...variable.problems);
    warnings.push(...variable.warnings);
    if (variable.givenAs !== undefined) given.set(row.field, variable.givenAs);
    if (variable.file !== undefined) files.set(row.field, variable.file);
    if (variable.problems.length > 0) invalid.add(row.field);
    values[row.field] = variable.value ?? row.default;
  }
  return { values, given, files, invalid, problems, warnings };
}

const NO_MOGRIFIERS: MogrifiersResult = { mogrifiers: [], problems: [], warnings: [] };

/** The mogrifiers of the DogStatsD output. */
function mogrifiersOf(environment: Environment, view: SettingsView, states: SettingStates): MogrifiersResult {
  const { settings, nameOf } = view;
  const reason = findUnmetCondition([TAGGED_OUTPUT], states);
  if (reason !== undefined) {
    return { ...NO_MOGRIFIERS, warnings: mogrifierVariables(environment).map((name) => noEffect(name, reason)) };
  }
  return readMogrifiers(environment, settings.taggedstatsMogrifiers, nameOf('taggedstatsMogrifiers'));
}

/** Warnings about variables that are set and whose names are close to those of settings. */
function findMisspelledNames(environment: Environment): string[] {
  return lookUp(environment, Object.keys(environment)).flatMap(({ name }) => {
    const nearest = knownNames.has(name) ? undefined : nearestName(name, knownNames, VARIABLE_TOLERANCE);
    return nearest === undefined ? [] : [`${name} is not a setting and has no effect; did you mean ${nearest}?`];
  });
}

/** A warning about a socket on which connections would wait, because nothing accepts them. */
function findUnusedSockets({ sockets }: ServiceManager, { disableStats, usePullmetrics }: Settings): string[] {
  if (sockets.metrics === undefined || (usePullmetrics && !disableStats)) return [];
  const reason = disableStats ? 'DISABLE_STATS is true' : 'USE_PULLMETRICS is false';
  return [`the socket "metrics" of the service manager has no effect, because ${reason}`];
}

/** Freezes a value that consists of plain objects and arrays, recursively. */
function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}
