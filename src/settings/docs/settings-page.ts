import { describeGroup, type Description, headingOf } from './describe-setting';
import type { SettingGroup } from '../table/setting';
import { settingsTable } from '../table/settings-table';

const INTRODUCTION = `A variable that is empty counts as not set, and blanks around values and list items are left out. Words are taken in any
case. A boolean is \`true\`, \`t\`, \`1\` or \`false\`, \`f\`, \`0\`. A duration is written as \`150us\`, \`10s\` or \`1h30m\` (units \`ns\`, \`us\`,
\`ms\`, \`s\`, \`m\`, \`h\`); only 0 needs no unit. A whole number may be written as \`0x1f90\` or \`8_080\`, and a leading 0 makes it octal.
A name and its alias may both be set only to the same value.
`;

/** The README's tables of settings, one for each group. */
export function settingsMarkdown(): string {
  return [INTRODUCTION, ...settingsTable.map(table)].join('\n');
}

function table(group: SettingGroup): string {
  return [
    `### ${headingOf(group)}\n`,
    ...(group.note === undefined ? [] : [`${prose(group.note)}\n`]),
    '| Setting | Alias | Values | Default | Meaning |',
    '|---|---|---|---|---|',
    ...describeGroup(group).map(row),
    '',
  ].join('\n');
}

function row({ name, alias, allowed, default: value, help }: Description): string {
  const shown = value === undefined || value.includes(' ') ? prose(value ?? '') : code(value);
  return `| ${[code(name), alias === undefined ? '' : code(alias), prose(allowed), shown, prose(help)].join(' | ')} |`;
}

function code(text: string) {
  return `\`${text}\``;
}

/** Names of variables (with a value or an asterisk), file patterns, paths and forms of an address. */
const LITERAL =
  /[A-Z][A-Z\d]*(?:_[A-Z\d]+)+(?:_\*|=\w+)?|<NAME>|\*\.\w+|(?<!\S)\/\w*|\[host\]:port|_service\S+|\w+:\/\/(?:\/\w*(?::port)?)?…?|key="value"/g;

function prose(text: string) {
  return text.replaceAll(LITERAL, code);
}
