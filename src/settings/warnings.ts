import { VARIABLE_TOLERANCE, nearestName } from '../text/nearest-name';
import type { ServiceManager } from './service-manager';
import type { Settings } from './settings';
import type { Condition, StateOf } from './table/condition';
import { type Setting, conditionsOf, fileNamesOf, namesOf } from './table/setting';
import { settingRows, settingsTable } from './table/settings-table';
import { type Environment, lookUp } from './variables';

/** The settings of a process, by neutral name. */
export interface SettingStates {
  readonly stateOf: StateOf;
  /** Whether the setting is not set, or set to a valid value. */
  readonly isValid: (name: string) => boolean;
}

/** One warning for each setting that is set and has no effect, because it is deprecated or because of another setting. */
export function findIneffectiveSettings(states: SettingStates): string[] {
  return settingsTable.flatMap((group) =>
    group.settings.flatMap((setting: Setting) => {
      const { variable, isGiven } = states.stateOf(setting.name);
      if (!isGiven || !states.isValid(setting.name) || isSwitchedOff(setting, states)) return [];
      if (setting.isDeprecated === true) return [`${variable} is deprecated and has no effect; remove it.`];
      const reason = findUnmetCondition(conditionsOf(setting, group), states);
      return reason === undefined ? [] : [noEffect(variable, reason)];
    }),
  );
}

/** The warning that a variable has no effect. */
export function noEffect(variable: string, reason: string): string {
  return `${variable} has no effect, because ${reason}.`;
}

/** Why the first of the conditions that does not hold does not hold; undefined when all hold. */
export function findUnmetCondition(conditions: readonly Condition[], states: SettingStates): string | undefined {
  for (const { names, failure } of conditions) {
    if (!names.every(states.isValid)) return undefined;
    const reason = failure(states.stateOf);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/** Switching something off that is off anyway needs no warning; nor does 0 for a deprecated number. */
function isSwitchedOff(setting: Setting, { stateOf }: SettingStates): boolean {
  const { value } = stateOf(setting.name);
  return (value === 'false' && setting.default !== true) || (setting.isDeprecated === true && value === '0');
}

const knownNames = new Set(settingRows.flatMap((row) => [...namesOf(row), ...fileNamesOf(row)]));

/** Warnings about variables that are set and whose names are close to those of settings. */
export function findUnknownVariables(environment: Environment): string[] {
  return lookUp(environment, Object.keys(environment)).flatMap(({ name }) => {
    const nearest = knownNames.has(name) ? undefined : nearestName(name, knownNames, VARIABLE_TOLERANCE);
    return nearest === undefined ? [] : [`${name} is not a setting and has no effect; did you mean ${nearest}?`];
  });
}

/** A warning about a socket on which connections would wait, because nothing accepts them. */
export function findUnusedSockets({ sockets }: ServiceManager, { disableStats, usePullmetrics }: Settings): string[] {
  if (sockets.metrics === undefined || (usePullmetrics && !disableStats)) return [];
  const reason = disableStats ? 'DISABLE_STATS is true' : 'USE_PULLMETRICS is false';
  return [`the socket "metrics" of the service manager has no effect, because ${reason}`];
}
