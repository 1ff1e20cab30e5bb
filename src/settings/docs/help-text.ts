import { describeGroup, type Description, notesOf } from './describe-setting';
import type { SettingGroup } from '../table/setting';
import { settingsTable } from '../table/settings-table';

const WIDTH = 100;

const INTRODUCTION = `Usage: weir [-h | --help | --version]

A rate limit service: envoy.service.ratelimit.v3 over gRPC, and JSON over HTTP.

weir is configured only by environment variables, which are listed below. Where the Go service for
the same protocol uses another name, that name follows a "|" and works as well: set one of the two.
An empty variable counts as not set. Durations are written like 150us, 10s or 1h30m; the items of a
list are separated by commas. A secret may be in a file, which the variable with the suffix _FILE
names, and which is read again when it has changed. If a setting is invalid, weir prints what is
wrong to standard error and exits with code 1 before it opens any port.
`;

/** The output of `weir --help`: every setting with its alias, meaning, allowed values and default, in 100 columns. */
export function helpText(): string {
  return [INTRODUCTION, ...settingsTable.map(formatGroup)].join('\n');
}

function formatGroup(group: SettingGroup): string {
  const notes = notesOf(group);
  const heading = notes === undefined ? `${group.title}\n` : `${group.title}\n${wrap(notes, '  ')}\n`;
  return [heading, ...describeGroup(group).map(formatSetting)].join('\n');
}

function formatSetting({ name, alias, allowed, default: value, help }: Description): string {
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
