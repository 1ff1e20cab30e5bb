import type { SettingGroup } from '../table/setting';

/**
 * Finds the settings of features that are planned for a later release: one warning lists those that are set and have no effect yet.
 *
 * @param variables the settings that are set, by field, each with its variable
 */
export function findPlannedFeatures(
  table: readonly SettingGroup[],
  variables: ReadonlyMap<string, string>,
): readonly string[] {
  const byFeature = new Map<string, string[]>();
  for (const { field, plannedFeature } of table.flatMap(({ settings }) => settings)) {
    const variable = variables.get(field);
    if (plannedFeature === undefined || variable === undefined) continue;
    const others = byFeature.get(plannedFeature);
    if (others === undefined) byFeature.set(plannedFeature, [variable]);
    else others.push(variable);
  }
  const parts = [...byFeature].map(([feature, names]) => `${names.join(', ')} (${feature})`);
  if (parts.length === 0) return [];
  return [
    `These settings have no effect yet, because their features are planned for a later release: ${parts.join('; ')}.`,
  ];
}
