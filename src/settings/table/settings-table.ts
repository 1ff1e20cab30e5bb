import type { Condition } from './condition';
import { decisionGroups } from './decisions';
import { listenerGroups } from './listeners';
import { outputGroups } from './outputs';
import { ruleGroups } from './rules';
import type { Setting, SettingGroup } from './setting';
import { storeGroups } from './stores';

/**
 * All settings, in the order in which they are documented. Parsing, the type {@link Settings}, `weir --help` and
 * docs/settings.md are derived from this table: a new row is a new field and a new line in both documents.
 */
export const settingsTable = [
  ...listenerGroups,
  ...ruleGroups,
  ...decisionGroups,
  ...storeGroups,
  ...outputGroups,
] as const;

/** The type of a row. */
export type Row = (typeof settingsTable)[number]['settings'][number];

const groups: readonly SettingGroup<readonly Setting<Row['field']>[]>[] = settingsTable;

/** A row with all conditions under which it has an effect: those of its group that are not on itself, and its own. */
export type TableRow = Setting<Row['field']> & { readonly conditions: readonly Condition[] };

export const settingRows = groups.flatMap(({ settings, requires = [] }) =>
  settings.map((row): TableRow => {
    const ofGroup = requires.filter(({ names }) => !names.includes(row.name));
    return { ...row, conditions: [...ofGroup, ...row.requires] };
  }),
);
