import type { Condition } from '../table/condition';
import { fileNamesOf } from '../variables/secret-file';
import { filePath } from '../values/text';
import { DerivedDefault, type Setting, type SettingFamily, type SettingGroup } from '../table/setting';

/** A setting in words, for the help text and for docs/settings.md. */
export interface Description {
  readonly name: string;
  readonly alias: string | undefined;
  readonly allowed: string;
  /** Undefined if there is no default. */
  readonly default: string | undefined;
  readonly help: string;
}

/** Describes the settings of a group, each with that of its file if it is a secret, followed by its families of settings. */
export function describeGroup(group: SettingGroup): readonly Description[] {
  const settings = group.settings.flatMap((setting) => [describeSetting(setting), ...describeFile(setting)]);
  return [...settings, ...(group.families ?? []).map(describeFamily)];
}

function describeSetting(setting: Setting): Description {
  const { name, alias, type } = setting;
  const help = [setting.help];
  help.push(...onlyUnder(setting.requires));
  return { name, alias, allowed: type.allowed, default: describeDefault(setting), help: help.join(' ') };
}

/** The setting that names the file of a secret. */
function describeFile(setting: Setting): readonly Description[] {
  const [name, alias] = fileNamesOf(setting);
  if (name === undefined) return [];
  const help = `File that contains ${setting.name}, used instead of it; read again when it has changed.`;
  return [{ name, alias, allowed: filePath.allowed, default: undefined, help }];
}

function describeDefault({ type, default: value, defaultText }: Setting): string | undefined {
  if (defaultText !== undefined) return defaultText;
  if (value instanceof DerivedDefault) return value.text;
  return value === undefined ? undefined : type.format(value) || undefined;
}

function describeFamily({ name, alias, allowed, defaultText, requires, help }: SettingFamily): Description {
  return { name, alias, allowed, default: defaultText, help: [help, ...onlyUnder(requires)].join(' ') };
}

/** The remarks below the heading of a group. */
export function notesOf({ note, requires }: SettingGroup): string | undefined {
  const notes = [...onlyUnder(requires), ...(note === undefined ? [] : [note])];
  return notes.length === 0 ? undefined : notes.join(' ');
}

/** One sentence, or none if there are no conditions. */
function onlyUnder(conditions: readonly Condition[] = []): readonly string[] {
  return conditions.length === 0 ? [] : [`Only ${conditions.map(({ text }) => text).join(' and ')}.`];
}
