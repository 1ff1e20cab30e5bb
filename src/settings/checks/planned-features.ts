import { DerivedDefault, type Setting, type SettingGroup } from '../table/setting';

/** What a look at the settings needs to know of each. */
export interface Given {
  /** The settings that are set, by field, each with its variable. */
  readonly variables: ReadonlyMap<string, string>;
  /** The value in force; undefined when there is none. */
  readonly value: (field: string) => unknown;
}

export interface PlannedFeaturesFound {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Looks for settings whose feature a later release brings. Those that are set have no effect yet: one warning names them all.
 * A value that asks for such a feature is refused.
 */
export function findPlannedFeatures(table: readonly SettingGroup[], given: Given): PlannedFeaturesFound {
  const problems: string[] = [];
  const waiting = new Map<string, string[]>();
  for (const group of table) {
    for (const setting of group.settings) {
      const variable = given.variables.get(setting.field);
      const problem = refusal(setting, variable, given.value(setting.field));
      if (problem !== undefined) problems.push(problem);
      const feature = setting.plannedFeature ?? group.plannedFeature;
      if (feature === undefined || variable === undefined) continue;
      const names = waiting.get(feature) ?? [];
      waiting.set(feature, names);
      names.push(variable);
    }
  }
  const parts = [...waiting].map(([feature, names]) => `${names.join(', ')} (${feature})`);
  const warnings =
    parts.length > 0 ? [`These settings have no effect before a later release: ${parts.join('; ')}.`] : [];
  return { problems, warnings };
}

function refusal(
  { name, type, plannedValues = {}, default: fallback }: Setting,
  variable: string | undefined,
  value: unknown,
) {
  if (value === undefined) return undefined;
  const written = type.format(value);
  const feature = plannedValues[written];
  if (feature === undefined) return undefined;
  if (variable !== undefined) return `${variable}=${written} asks for ${feature}, which a later release brings.`;
  const reason = fallback instanceof DerivedDefault ? ` (${fallback.text})` : '';
  return `${name} is not set and therefore ${written}${reason}: a later release brings ${feature}; set ${name} to go on without.`;
}
