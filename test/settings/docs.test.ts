import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { helpText } from '../../src/settings/docs';
import { listSettings } from '../../src/settings/list-settings';
import { readSettings } from '../../src/settings/read-settings';
import { settingRows } from '../support/data/secret-settings';
import { env } from './environments';

const ROOT = join(__dirname, '../..');

/** The settings in the order of the table, each secret with that of its file. */
const names = settingRows.flatMap(({ name, type }) => (type.secret === undefined ? [name] : [name, `${name}_FILE`]));
const families = ['PATTERN', 'NAME', 'TAGS'].map((part) => `TAGGEDSTATS_MOGRIFIER_<NAME>_${part}`);

describe('the help text', () => {
  const help = helpText();

  test('begins with the usage, and fits a terminal of 100 columns', () => {
    expect(help).toMatch(/^Usage: weir \[-h \| --help \| --version\]\n/);
    expect(help.split('\n').filter((line) => line.length > 100)).toEqual([]);
    expect(help).not.toMatch(/ \n|\n\n\n/);
  });

  test('lists the settings in the order of the table, and each alias', () => {
    const listed = [...help.matchAll(/^ {2}([A-Z][A-Z\d_]+(?:<NAME>_[A-Z]+)?)(?: \| \S+)?$/gm)].map(([, name]) => name);
    expect(listed.filter((name) => !families.includes(name ?? ''))).toEqual(names);
    expect(listed).toEqual(expect.arrayContaining(families));
    for (const { name, alias } of settingRows)
      if (alias !== undefined) expect(help).toContain(`  ${name} | ${alias}\n`);
  });

  test('shows the alias, meaning, allowed values and default of a setting', () => {
    const meaning = 'Longest delay between two attempts to connect at startup. [duration, above 0; default: 30s]';
    expect(help).toContain(`  KVSTORE_STARTUP_MAX_INTERVAL | REDIS_STARTUP_MAX_INTERVAL\n      ${meaning}\n`);
  });
});

describe('docs/settings.md', () => {
  const page = readFileSync(join(ROOT, 'docs/settings.md'), 'utf8');
  const rows = page.split('\n').filter((line) => /^(?:\||-) `/.test(line));

  test('is the page of the table in the last build', () => {
    const { stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/settings-table.mjs'), '--check']);
    expect(String(stderr)).toBe('weir: docs/settings.md is up to date\n');
  });

  test('names every setting, file of a secret and family of settings', () => {
    const named = rows.flatMap((row) => Array.from(row.split(' | ')[0]!.matchAll(/`(\S+)`/g), ([, name]) => name));
    expect(named).toEqual(expect.arrayContaining([...names, ...families]));
  });
});

describe('the list of settings for operators', () => {
  function lineOf(text: string, name: string) {
    return listSettings(readSettings(env(text))).find((line) => line.name === name);
  }

  test('has every setting, with its value as it may be written, and the variable that sets it', () => {
    expect(listSettings(readSettings({})).map(({ name }) => name)).toEqual(settingRows.map(({ name }) => name));
    const documentation = expect.anything();
    const age = { documentation, name: 'GRPC_MAX_CONNECTION_AGE', source: 'default', value: '24h' };
    expect(lineOf('', 'GRPC_MAX_CONNECTION_AGE')).toEqual(age);
    expect(lineOf('', 'GRPC_UDS')).toEqual({ name: 'GRPC_UDS', source: 'default', value: null, documentation });
    const given = { documentation, name: 'USE_STATSD', source: 'environment', value: 'true' };
    expect(lineOf('USE_STATSD=TRUE', 'USE_STATSD')).toEqual(given);
  });

  test('has the variables of mogrifiers', () => {
    const prefix = 'DOG_STATSD_MOGRIFIER_A_';
    const variables = `${prefix}PATTERN=^x(.*)$ ${prefix}NAME=y ${prefix}TAGS=b:$1,c:d`;
    const loaded = readSettings(env(`USE_DOG_STATSD=true USE_DOG_STATSD_MOGRIFIERS=a ${variables}`));
    expect(listSettings(loaded).filter(({ name }) => name.startsWith(prefix))).toMatchObject([
      { name: `${prefix}PATTERN`, source: 'environment', value: '^x(.*)$' },
      { name: `${prefix}NAME`, source: 'environment', value: 'y' },
      { name: `${prefix}TAGS`, source: 'environment', value: 'b:$1,c:d' },
    ]);
    const withoutTags = `USE_DOG_STATSD=true USE_DOG_STATSD_MOGRIFIERS=a ${variables.replace(/ \S+$/, '')}`;
    expect(lineOf(withoutTags, `${prefix}TAGS`)).toMatchObject({ source: 'default', value: null });
  });

  test('masks secrets', () => {
    const text =
      'REDIS_URL=redis://user:hidden-1@host:6379 REDIS_AUTH=hidden-2 EXTRA_TAGS=a:https://user:hidden-3@host';
    expect(lineOf(text, 'REDIS_URL')?.value).toBe('redis://***@host:6379');
    expect(lineOf(text, 'REDIS_AUTH')?.value).toBe('***');
    expect(JSON.stringify(listSettings(readSettings(env(text))))).not.toContain('hidden');
  });
});
