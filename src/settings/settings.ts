import type { Mogrifier } from './mogrifiers';
import type { ValueOf } from './table/setting';
import type { Row } from './table/settings-table';

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

/** The prefix of the fields of an instance of the key-value store. */
export type InstancePrefix = 'kvstore' | 'kvstorePersecond';

/** The settings that each of these instances has, as the part of their fields after the prefix. */
export type InstanceField = {
  [F in Field]: F extends `kvstorePersecond${infer Suffix}` ? Exclude<Suffix, ''> : never;
}[Field];

/** Some settings and the variables that set them: the input of checks between settings. */
export interface SettingsView<Fields extends Field = Field> {
  readonly settings: Pick<Settings, Fields>;
  /** The variable that sets the setting, or else its neutral name. */
  readonly nameOf: (field: Fields) => string;
}
