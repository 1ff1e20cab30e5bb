import type { Condition, SettingState } from '../table/condition';
import type { Setting, SettingGroup } from '../table/setting';

/** The settings of a process, by neutral name. */
export interface SettingStates {
  readonly stateOf: (name: string) => SettingState;
  /** Whether the setting is not set, or set to a valid value. */
  readonly isValid: (name: string) => boolean;
}

/** One warning for each setting that is set and has no effect, because it is deprecated or because of another setting. */
export function findIneffectiveSettings(table: readonly SettingGroup[], states: SettingStates): string[] {
  return table.flatMap((group) =>
    group.settings.flatMap((setting) => {
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

/**
 * The conditions under which a setting has an effect: those of its group, except those on the setting itself, and its own.
 */
export function conditionsOf(setting: Setting, group: SettingGroup): readonly Condition[] {
  const ofGroup = (group.requires ?? []).filter(({ names }) => !names.includes(setting.name));
  return [...ofGroup, ...(setting.requires ?? [])];
}

/** Switching something off that is off anyway needs no warning; nor does 0 for a deprecated number. */
function isSwitchedOff(setting: Setting, { stateOf }: SettingStates): boolean {
  const { value } = stateOf(setting.name);
  return (value === 'false' && setting.default !== true) || (setting.isDeprecated === true && value === '0');
}
