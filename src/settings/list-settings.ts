import { hideAddressCredentials, hideUrlCredentials } from '../text/hide-credentials';
import type { Mogrifier } from './mogrifiers';
import { describeSetting } from './docs';
import type { LoadedSettings } from './read-settings';
import type { Setting } from './table/setting';
import { settingRows } from './table/settings-table';
import { mogrifierTags } from './values/lists';

/**
 * All settings as operators see them, in the order of the table, then the variables of the mogrifiers. `value` is as a
 * user would write it: `***` for a secret, the path of the file for a secret from one, null when there is none.
 */
export function listSettings({ settings, given, files, nameOf }: LoadedSettings) {
  const lines = settingRows.map((row) => {
    const value: unknown = settings[row.field];
    const name = nameOf(row.field);
    const file = files.get(row.field);
    const { help, allowed, default: byDefault = null } = describeSetting(row);
    const documentation = { help, allowed, default: byDefault };
    if (file !== undefined) return { name, source: 'file' as const, value: file.path, documentation };
    return {
      name,
      source: given.has(row.field) ? ('environment' as const) : ('default' as const),
      value: value === undefined ? null : shown(row, row.type.format(value)),
      documentation,
    };
  });
  return [...lines, ...settings.mogrifiers.flatMap(mogrifierLines)];
}

/** The variables of a mogrifier under the names of the program that its pattern is set for. */
function mogrifierLines({ patternVariable, pattern, output, tags }: Mogrifier) {
  const prefix = patternVariable.slice(0, -'PATTERN'.length);
  const parts = { PATTERN: pattern, NAME: output, TAGS: mogrifierTags.format(tags) };
  return Object.entries(parts).map(([part, text]) => ({
    name: prefix + part,
    // Only the tags may be empty.
    source: text === '' ? ('default' as const) : ('environment' as const),
    value: hideUrlCredentials(text) || null,
    documentation: null,
  }));
}

function shown({ type: { secret } }: Setting, text: string): string {
  if (secret === 'value') return '***';
  // A URL may have been set by mistake where the setting expects something else.
  return secret === 'credentials' ? hideAddressCredentials(text) : hideUrlCredentials(text);
}
