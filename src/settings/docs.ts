import type { Condition } from './table/condition';
import { DerivedDefault, type Setting, type SettingGroup, fileNamesOf } from './table/setting';
import { settingsTable } from './table/settings-table';
import { otlpHeaders } from './values/lists';
import { filePath } from './values/value-type';

/** A setting in words, for the help text, docs/settings.md and operators. */
interface Description {
  readonly name: string;
  readonly alias: string | undefined;
  readonly allowed: string;
  /** Undefined if there is no default. */
  readonly default: string | undefined;
  readonly help: string;
}

/**
 * Describes the settings of a group, each with that of its file if it is a secret, followed by its families of
 * settings.
 */
function describeGroup({ settings, families = [] }: SettingGroup): readonly Description[] {
  return [...settings.flatMap((row) => [describeSetting(row), ...describeFile(row)]), ...families.map(describeSetting)];
}

export function describeSetting(row: Setting): Description {
  const { name, alias, type, requires } = row;
  const help = [row.help, ...onlyUnder(requires)].join(' ');
  return { name, alias, allowed: type.allowed, default: describeDefault(row), help };
}

/** The setting that names the file of a secret. */
function describeFile(row: Setting): readonly Description[] {
  const [name, alias] = fileNamesOf(row);
  if (name === undefined) return [];
  const help = `File with ${row.name}; read ${row.type === otlpHeaders ? 'at start' : 'again when it has changed'}.`;
  return [{ name, alias, allowed: filePath.allowed, default: undefined, help }];
}

function describeDefault({ type, default: value }: Setting): string | undefined {
  if (value instanceof DerivedDefault) return value.text;
  return value === undefined ? undefined : type.format(value) || undefined;
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

const WIDTH = 100;

const HELP_INTRODUCTION = `Usage: weir [-h | --help | --version]

A rate limit service: envoy.service.ratelimit.v3 over gRPC, and JSON over HTTP.

weir is configured only by environment variables, which are listed below. Where the Go service for
the same protocol uses another name, that name follows a "|" and works as well: set one of the two.
An empty variable counts as not set. Durations are written like 150us, 10s or 1h30m; the items of a
list are separated by commas. A secret may be in a file, which the variable with the suffix _FILE
names, and which is read again when it has changed. Certificates and keys are PEM files. If a
setting is invalid, weir prints what is wrong to standard error and exits with code 1 before it
opens any port.
`;

/** The output of `weir --help`: every setting with its alias, meaning, allowed values and default, in 100 columns. */
export function helpText(): string {
  return [HELP_INTRODUCTION, ...settingsTable.map(helpOfGroup)].join('\n');
}

function helpOfGroup(group: SettingGroup): string {
  const notes = notesOf(group);
  const heading = notes === undefined ? `${group.title}\n` : `${group.title}\n${wrap(notes, '  ')}\n`;
  return [heading, ...describeGroup(group).map(helpOfSetting)].join('\n');
}

function helpOfSetting({ name, alias, allowed, default: value, help }: Description): string {
  const names = alias === undefined ? name : `${name} | ${alias}`;
  const values = `[${allowed}${value === undefined ? '' : `; default: ${value}`}]`;
  return `${wrap(names, '  ')}\n${wrap(`${help} ${values}`, '      ')}\n`;
}

/** Wraps a text at spaces to the width of the help text; `indent` starts each line. */
function wrap(text: string, indent: string): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && indent.length + line.length + 1 + word.length > WIDTH) {
      lines.push(indent + line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, indent + line].join('\n');
}
