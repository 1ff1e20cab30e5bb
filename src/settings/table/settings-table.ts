import { decisionSettings, explanationSettings, responseHeaderSettings } from './decisions';
import type { Condition } from './condition';
import { grpcTlsSettings, listenerSettings, processSettings } from './listeners';
import { otlpExporterSettings, statisticsOutputSettings, statisticsSettings, traceSettings } from './outputs';
import { ruleSettings, xdsSettings } from './rules';
import type { Setting, SettingGroup } from './setting';
import { counterSettings, kvstorePersecondSettings, kvstoreSettings, plaincacheSettings } from './stores';

/**
 * All settings, in the order in which they are documented. Parsing, the type {@link Settings}, `weir --help` and
 * docs/settings.md are derived from this table: a new row is a new field and a new line in both documents.
 */
export const settingsTable = [
  listenerSettings,
  grpcTlsSettings,
  processSettings,
  ruleSettings,
  xdsSettings,
  decisionSettings,
  responseHeaderSettings,
  explanationSettings,
  counterSettings,
  kvstoreSettings,
  kvstorePersecondSettings,
  plaincacheSettings,
  statisticsSettings,
  statisticsOutputSettings,
  traceSettings,
  otlpExporterSettings,
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
