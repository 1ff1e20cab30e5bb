import type { Mogrifier } from './mogrifiers';
import type { DerivedDefault, ValueOf } from './table/setting';
import type { settingsTable } from './table/settings-table';

/** The union of the types of the table's rows. */
export type Row = (typeof settingsTable)[number]['settings'][number];

type TableSettings = { readonly [R in Row as R['field']]: ValueOf<R> };

/**
 * The settings of a process, with one field for each row of the table; deeply frozen. Durations are in milliseconds, with
 * fractions; sizes are in bytes. A setting with neither a value nor a default is undefined.
 */
export interface Settings extends TableSettings {
  /** The mogrifiers that TAGGEDSTATS_MOGRIFIERS lists, in its order; empty unless USE_TAGGEDSTATS is true. */
  readonly mogrifiers: readonly Mogrifier[];
}

/** The field of a setting that has a variable. */
export type Field = Row['field'];

/** The fields whose defaults follow from other settings. */
export type DerivedField = Extract<Row, { readonly default: DerivedDefault }>['field'];

/** Some settings and the variables that set them: the input of derived defaults and of checks between settings. */
export interface SettingsView<Fields extends Field = Field> {
  readonly settings: Pick<Settings, Fields>;
  /** Whether the environment sets the setting. */
  readonly isGiven: (field: Fields) => boolean;
  /** The variable that sets the setting, or else its neutral name. */
  readonly nameOf: (field: Fields) => string;
}
