import { type LoadedSettings, SettingsError, readSettings } from '../../src/settings/read-settings';
import type { Field } from '../../src/settings/settings';
import type { Setting } from '../../src/settings/table/setting';
import type { Environment, ReadSecretFile } from '../../src/settings/variables';
import { settingRows } from '../support/data/secret-settings';

/** The environment of `NAME=text` pairs, separated by blanks: `env('PORT=1 HOST=a')`. */
export function env(text: string): Readonly<Record<string, string>> {
  const pairs = text.split(' ').filter((pair) => pair !== '');
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
}

/** The problems with an environment, one sentence each. */
export function problemsOf(environment: Environment, readFile?: ReadSecretFile): readonly string[] {
  try {
    readSettings(environment, readFile);
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}

export function rowOf(name: string): Setting {
  const row = settingRows.find((candidate) => candidate.name === name || candidate.alias === name);
  if (row === undefined) throw new Error(`no setting is named ${name}`);
  return row;
}

/** The value of a setting, by its variable. Where values are in the settings is known only here. */
export function valueOf({ settings }: Pick<LoadedSettings, 'settings'>, name: string): unknown {
  return new Map<string, unknown>(Object.entries(settings)).get(rowOf(name).field);
}

/** The value of a setting as it is now: that of its file, if it is in one. */
export function readAgain(loaded: LoadedSettings, name: string): unknown {
  return loaded.readAgain(rowOf(name).field as Field);
}

/** The value that a setting has when its variable has this text. Throws if the text is rejected. */
export function parsed(name: string, text: string): unknown {
  return valueOf(readSettings({ [name]: text }), name);
}

/** Contents of files by path. */
export function files(contents: Readonly<Record<string, string>>): ReadSecretFile {
  return (path) => {
    const text = contents[path];
    if (text === undefined) throw new Error('it cannot be read (ENOENT)');
    return text;
  };
}

/** Texts of which every setting accepts at least two with different values. */
const TEXTS = [
  ...['false', 'true', '7s', '9s', '11', '13', '0.25', '0.75', '/a', '/b', 'a:1', 'b:2', 'a=1', 'b=2', 'one', 'two'],
  ...['memory', 'kvstore', 'single', 'cluster', 'CREATE', 'WAIT', 'FILE', 'GRPC_XDS_SOTW', 'tcp', 'udp', 'unix'],
  ...['allow', 'deny', 'auto', 'off', 'denied', 'all', 'http', 'grpc', 'info', 'error', 'text', 'json'],
  ...['_a._tcp.b', '_c._tcp.d', ':1', ':2'],
  ...['2000000', '3000000', 'a-token-of-operators', 'another-token-of-operators'],
  ...['a view', 'b peer'].map((holder) => `${holder} sha256:${'0'.repeat(64)}`),
  ...['draft03', 'both', 'seconds', 'timestamp', 'http/json', 'delta', 'lowmemory'],
];

/** Two texts that a setting accepts with different values and without a warning. */
export function twoTexts({ type, name }: Setting): readonly [string, string] {
  const texts = new Map<string, string>();
  for (const text of TEXTS) {
    const result = type.parse(text);
    if ('value' in result && result.notice === undefined) texts.set(type.format(result.value), text);
  }
  const [one, other] = texts.values();
  if (one === undefined || other === undefined) throw new Error(`${name} accepts fewer than two of the texts`);
  return [one, other];
}
