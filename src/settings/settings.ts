import type { Mogrifier } from './mogrifiers';
import type { ValueOf } from './table/setting';
import { type Row, settingRows } from './table/settings-table';

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

/** The settings of an instance of the key-value store. */
export type InstanceSettings = Section<'kvstorePersecond'>;

/**
 * The settings whose fields begin with a prefix, by the rest of their fields (`initialInterval` for `kvstoreStartupInitialInterval`), and
 * their variables: what uses them takes them as they are.
 */
export type Section<Prefix extends string> = Shortened<Prefix> & {
  /** The variable that sets each, or else its neutral name: for messages. */
  readonly variables: Readonly<Record<keyof Shortened<Prefix>, string>>;
};

type Shortened<Prefix extends string> = {
  readonly [F in Field as F extends `${Prefix}${infer Rest}` ? Uncapitalize<Exclude<Rest, ''>> : never]: Settings[F];
};

export function sectionOf<const Prefix extends string>(
  { settings, nameOf }: SettingsView,
  prefix: Prefix,
): Section<Prefix> {
  const shortened: Record<string, unknown> = {};
  const variables: Record<string, string> = {};
  for (const { field } of settingRows) {
    if (!field.startsWith(prefix) || field === prefix) continue;
    const short = field.charAt(prefix.length).toLowerCase() + field.slice(prefix.length + 1);
    shortened[short] = settings[field];
    variables[short] = nameOf(field);
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same rule as that of the type
  return { ...shortened, variables } as unknown as Section<Prefix>;
}

/** Some settings and the variables that set them: the input of checks between settings. */
export interface SettingsView {
  readonly settings: Settings;
  /** The variable that sets the setting, or else its neutral name. */
  readonly nameOf: (field: Field) => string;
}
