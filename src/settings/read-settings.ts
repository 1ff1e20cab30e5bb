import type { Check } from './checks/check';
import { deprecations, statisticsChecks, withoutEffect } from './checks/effects';
import { listenerChecks } from './checks/listeners';
import { storeChecks } from './checks/stores';
import { tlsChecks } from './checks/tls';
import { derivedDefaults } from './derived-defaults';
import { type Environment, lookUp } from './variables/environment';
import { findPlannedFeatures } from './checks/planned-features';
import { readMogrifiers } from './mogrifiers';
import { VARIABLE_TOLERANCE, nearestName } from '../text/nearest-name';
import { readVariable } from './variables/read-variable';
import { DerivedDefault, type Setting } from './table/setting';
import type { Field, Settings, SettingsView } from './settings';
import { settingsTable } from './table/settings-table';

/** The environment holds settings that cannot be used. The message names every one of them and holds no secret. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';

  /** One sentence for each thing that is wrong. */
  constructor(readonly problems: readonly string[]) {
    super(['These settings cannot be used:', ...problems.map((problem) => `  ${problem}`)].join('\n'));
  }
}

export interface LoadedSettings {
  readonly settings: Settings;
  /** The settings that the environment gives, each with the variable that gives it; the others have their defaults. */
  readonly given: ReadonlyMap<Field, string>;
  /** What is worth a line in the log, one sentence each, without secrets. */
  readonly warnings: readonly string[];
}

const rows: readonly Setting<Field>[] = settingsTable.flatMap((group): readonly Setting<Field>[] => group.settings);
const neutralNames = new Map(rows.map(({ field, name }) => [field, name] as const));
const knownNames = new Set(rows.flatMap(({ name, alias }) => (alias === undefined ? [name] : [name, alias])));

/**
 * Reads the settings of document 1, section 2.4, and of the Go service, from variables of the environment. Names are exact;
 * unknown variables are none of its business, save those that are nearly a setting's name, which get a warning.
 *
 * @throws {SettingsError} when a setting cannot be used, when a name and its alias differ, when settings contradict each
 *   other, or when one asks for what a later release brings: one error for all of them.
 */
export function readSettings(environment: Environment): LoadedSettings {
  const { values, given, unusable, problems, warnings } = readRows(environment);
  function isUsable(field: string) {
    return !unusable.has(field);
  }

  // The rows are those that the type is made of, so that every field is there with its type, save the defaults that follow
  // from other settings and the mogrifiers, which are filled in next.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const settings = values as unknown as Settings;
  const view: SettingsView = {
    settings,
    isGiven: (field) => given.has(field),
    nameOf: (field) => given.get(field) ?? neutralNames.get(field) ?? field,
  };
  for (const [field, choose] of Object.entries<(view: SettingsView) => unknown>(derivedDefaults)) {
    if (values[field] instanceof DerivedDefault) values[field] = choose(view);
  }
  values['mogrifiers'] = [];
  if (settings.useTaggedstats && isUsable('taggedstatsMogrifiers')) {
    const reading = readMogrifiers(environment, settings.taggedstatsMogrifiers);
    values['mogrifiers'] = reading.mogrifiers;
    problems.push(...reading.problems);
    warnings.push(...reading.warnings);
  }

  function findAll(checks: readonly Check[]) {
    return checks.filter(({ concerns }) => concerns.every(isUsable)).flatMap(({ find }) => find(view) ?? []);
  }
  const toCome = findPlannedFeatures(settingsTable, {
    variables: given,
    value: (field) => (isUsable(field) ? values[field] : undefined),
  });
  problems.push(...findAll([...tlsChecks, ...storeChecks, ...listenerChecks, ...statisticsChecks]), ...toCome.problems);
  warnings.push(...findAll(deprecations), ...findAll(withoutEffect), ...toCome.warnings, ...findSlips(environment));

  if (problems.length > 0) throw new SettingsError(problems);
  return { settings: deepFreeze(settings), given, warnings };
}

/** Reads every row by itself. A setting that cannot be used has its default, so that the look at the others can go on. */
function readRows(environment: Environment) {
  const values: Record<string, unknown> = {};
  const given = new Map<Field, string>();
  const unusable = new Set<string>();
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const row of rows) {
    const reading = readVariable(environment, row);
    problems.push(...reading.problems);
    warnings.push(...reading.warnings);
    if (reading.givenAs !== undefined) given.set(row.field, reading.givenAs);
    if (reading.problems.length > 0) unusable.add(row.field);
    values[row.field] = reading.value ?? row.default;
  }
  return { values, given, unusable, problems, warnings };
}

/** Variables that are set and nearly have a setting's name. */
function findSlips(environment: Environment): string[] {
  return lookUp(environment, Object.keys(environment)).flatMap(({ name }) => {
    const meant = knownNames.has(name) ? undefined : nearestName(name, knownNames, VARIABLE_TOLERANCE);
    return meant === undefined ? [] : [`${name} is no setting; did you mean ${meant}?`];
  });
}

/** Freezes a value of plain objects and arrays, and everything in it. */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}
