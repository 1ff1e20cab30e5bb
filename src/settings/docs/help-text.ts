import { describeGroup, type Description, headingOf } from './describe-setting';
import type { SettingGroup } from '../table/setting';
import { settingsTable } from '../table/settings-table';

const WIDTH = 100;

const INTRODUCTION = `Usage: weir [-h | --help]

A rate limit decision service: envoy.service.ratelimit.v3 over gRPC and HTTP.

weir is set up by environment variables. Each has a second name where the Go service for the same
protocol calls it otherwise; set one of the two. A variable that is empty counts as not set.
Durations are written as 150us, 10s or 1h30m, lists with commas. What cannot be used is listed on
standard error, and the program ends with exit code 1 before it listens.
`;

/** What `weir --help` prints: every setting with its second name, default and meaning, at most 100 columns wide. */
export function helpText(): string {
  return [INTRODUCTION, ...settingsTable.map(describeAll)].join('\n');
}

function describeAll(group: SettingGroup): string {
  const note = group.note === undefined ? '' : `${wrap(group.note, '  ')}\n`;
  return [`${headingOf(group)}\n${note}`, ...describeGroup(group).map(describe)].join('\n');
}

function describe({ name, alias, allowed, default: value, help }: Description): string {
  const names = alias === undefined ? name : `${name} | ${alias}`;
  const more = `[${allowed}${value === undefined ? '' : `; default: ${value}`}]`;
  return `${wrap(names, '  ')}\n${wrap(`${help} ${more}`, '      ')}\n`;
}

/** Breaks a text at blanks, so that every line fits; `indent` stands before each. */
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
