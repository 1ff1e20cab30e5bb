import { DerivedDefault, type Setting, type SettingGroup } from '../table/setting';

/** The settings of a process, by field. */
export interface SettingValues {
  /** The settings that are set, each with its variable. */
  readonly variables: ReadonlyMap<string, string>;
  /** The effective value; undefined when there is none. */
  readonly value: (field: string) => unknown;
}

export interface PlannedFeatureReport {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Finds the settings of features that are planned for a later release: one warning lists those that are set and have no effect
 * yet, and each value that needs such a feature is a problem.
 */
export function findPlannedFeatures(table: readonly SettingGroup[], values: SettingValues): PlannedFeatureReport {
  const problems: string[] = [];
  const variablesByFeature = new Map<string, string[]>();
  for (const group of table) {
    for (const setting of group.settings) {
      const variable = values.variables.get(setting.field);
      const problem = findProblem(setting, variable, values.value(setting.field));
      if (problem !== undefined) problems.push(problem);
      const feature = setting.plannedFeature ?? group.plannedFeature;
      if (feature === undefined || variable === undefined) continue;
      const variables = variablesByFeature.get(feature) ?? [];
      variablesByFeature.set(feature, variables);
      variables.push(variable);
    }
  }
  const parts = [...variablesByFeature].map(([feature, variables]) => `${variables.join(', ')} (${feature})`);
  const warnings =
    parts.length > 0
      ? [
          `These settings have no effect yet, because their features are planned for a later release: ${parts.join('; ')}.`,
        ]
      : [];
  return { problems, warnings };
}

function findProblem(setting: Setting, variable: string | undefined, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const { name, type, plannedValues = {}, default: fallback } = setting;
  const written = type.format(value);
  const feature = plannedValues[written];
  if (feature === undefined) return undefined;
  const reason = fallback instanceof DerivedDefault ? ` (${fallback.text})` : '';
  const subject =
    variable === undefined ? `${name} is not set and defaults to ${written}${reason}, which` : `${variable}=${written}`;
  return `${subject} is not supported yet: ${feature} is planned for a later release; set ${variable ?? name} to another value.`;
}
