import type { Mogrifier } from './mogrifiers';
import type { DerivedDefault, ValueOf } from './table/setting';
import type { settingsTable } from './table/settings-table';

/** The rows of the table, as a union of their types. */
export type Row = (typeof settingsTable)[number]['settings'][number];

type TableSettings = { readonly [R in Row as R['field']]: ValueOf<R> };

/**
 * The settings of one process: a field for every row of the table, frozen through and through. Durations are milliseconds,
 * fractions allowed; sizes are bytes; what has neither value nor default is undefined.
 */
export interface Settings extends TableSettings {
  /** The mogrifiers that TAGGEDSTATS_MOGRIFIERS names, in its order; empty unless USE_TAGGEDSTATS. */
  readonly mogrifiers: readonly Mogrifier[];
}

/** The field of a setting that a variable gives. */
export type Field = Row['field'];

/** The fields whose default follows from other settings. */
export type DerivedField = Extract<Row, { readonly default: DerivedDefault }>['field'];

/** Some settings and how they were given: what a default that follows from others, or a check across several, looks at. */
export interface SettingsView<Seen extends Field = Field> {
  readonly settings: Pick<Settings, Seen>;
  /** Whether the environment gives the setting. */
  readonly isGiven: (field: Seen) => boolean;
  /** The variable that gives the setting, else its neutral name. */
  readonly nameOf: (field: Seen) => string;
}
