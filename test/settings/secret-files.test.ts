import { listSettings } from '../../src/settings/list-settings';
import { readSettings } from '../../src/settings/read-settings';
import type { Field } from '../../src/settings/settings';
import type { Setting } from '../../src/settings/table/setting';
import { settingsTable } from '../../src/settings/table/settings-table';
import type { ReadSecretFile } from '../../src/settings/variables/secret-file';
import { secretsOfText } from '../../src/settings/variables/secrets';
import { problemsOf } from './problems-of';

const rows: readonly Setting<Field>[] = settingsTable.flatMap((group): readonly Setting<Field>[] => group.settings);
const secretRows = rows.filter(({ secret }) => secret !== undefined);
const names = secretRows.flatMap((row) => [row.name, ...(row.alias === undefined ? [] : [row.alias])]);

/** Two values of a setting. */
function valuesOf(name: string): readonly [string, string] {
  if (name === 'OPERATOR_TOKEN') return ['hidden-token-of-tests', 'another-token-of-tests'];
  if (name.startsWith('OTEL_')) return ['x-key=hidden-1', 'x-key=hidden-2'];
  // A password with its user, a header, and an address.
  return ['hidden:1111', 'hidden:2222'];
}

/** Files by path. */
function contents(files: Readonly<Record<string, string>>): ReadSecretFile {
  return (path) => {
    const text = files[path];
    if (text === undefined) throw new Error('it cannot be read (ENOENT)');
    return text;
  };
}

test('the settings of credentials, headers and tokens may be in files', () => {
  expect(names).toEqual([
    'OPERATOR_TOKEN',
    'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS',
    ...['KVSTORE_URL', 'REDIS_URL', 'KVSTORE_AUTH', 'REDIS_AUTH', 'KVSTORE_SENTINEL_AUTH', 'REDIS_SENTINEL_AUTH'],
    ...['KVSTORE_PERSECOND_URL', 'REDIS_PERSECOND_URL', 'KVSTORE_PERSECOND_AUTH', 'REDIS_PERSECOND_AUTH'],
    ...['KVSTORE_PERSECOND_SENTINEL_AUTH', 'REDIS_PERSECOND_SENTINEL_AUTH'],
    ...['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'],
  ]);
});

describe.each(secretRows.map((row) => [row.name, row] as const))('%s_FILE', (name, row) => {
  const [one, other] = valuesOf(name);
  const readFile = contents({ '/one': one, '/other': other });
  const file = `${name}_FILE`;
  const variables = [file, ...(row.alias === undefined ? [] : [`${row.alias}_FILE`])];

  test('names the file that contains the value, under its own name and that of the alias', () => {
    const fromVariable = readSettings({ [name]: one });
    for (const variable of variables) {
      const reading = readSettings({ [variable]: '/one' }, readFile);
      expect(reading.settings).toEqual(fromVariable.settings);
      expect(reading.given).toEqual(new Map([[row.field, variable]]));
      expect(reading.files.get(row.field)).toMatchObject({ variable, path: '/one' });
      expect(reading.warnings.filter((warning) => warning.includes('is not a setting'))).toEqual([]);
    }
  });

  test('is rejected together with the variable of the value, with what to remove', () => {
    expect(problemsOf({ [file]: '/one', [name]: one }, readFile)).toContain(
      `${name} and ${file} are both set; remove ${name} to use the file, or ${file} to use the variable.`,
    );
  });

  test('is rejected if the file cannot be read', () => {
    expect(problemsOf({ [file]: '/none' }, readFile)).toContain(
      `cannot use ${file}=/none: it cannot be read (ENOENT).`,
    );
  });

  test('is read again, from the path that it had', () => {
    const files: Record<string, string> = { '/file': one };
    const reading = readSettings({ [file]: '/file' }, (path, setting) => contents(files)(path, setting));
    files['/file'] = other;
    expect(reading.readAgain(row.field)).toEqual(readSettings({ [name]: other }).settings[row.field]);
    expect(reading.settings[row.field]).toEqual(readSettings({ [name]: one }).settings[row.field]);
    delete files['/file'];
    expect(() => reading.readAgain(row.field)).toThrow(new Error('it cannot be read (ENOENT)'));
  });

  test('is read from the file without surrounding blanks, unless it is a password', () => {
    const isPassword = name.endsWith('_AUTH');
    const { settings } = readSettings({ [file]: '/file' }, contents({ '/file': ` ${one} \n` }));
    const value = isPassword ? ` ${one} \n` : readSettings({ [name]: one }).settings[row.field];
    expect(settings[row.field]).toEqual(value);
  });

  test('is masked as it is read from the file', () => {
    const masked = secretsOfText(row, ` ${one} \n`);
    expect(masked).toEqual(secretsOfText(row, name.endsWith('_AUTH') ? ` ${one} \n` : one));
  });

  test('is listed with its path instead of the contents', () => {
    const listed = listSettings(readSettings({ [file]: '/one' }, readFile));
    expect(listed).toContainEqual({ name: file, source: 'file', value: '/one' });
    expect(JSON.stringify(listed)).not.toContain(one);
  });
});

test('a value that is not in a file is not read again', () => {
  const reading = readSettings({ KVSTORE_AUTH: 'word' }, () => {
    throw new Error('no file is read');
  });
  expect(reading.readAgain('kvstoreAuth')).toBe('word');
  expect(reading.readAgain('port')).toBe(8080);
});

test('both names of a file may be set to the same path only', () => {
  const readFile = contents({ '/a': 'word', '/b': 'word' });
  expect(readSettings({ KVSTORE_AUTH_FILE: '/a', REDIS_AUTH_FILE: '/a' }, readFile).settings.kvstoreAuth).toBe('word');
  expect(problemsOf({ KVSTORE_AUTH_FILE: '/a', REDIS_AUTH_FILE: '/b' }, readFile)).toEqual([
    'KVSTORE_AUTH_FILE=/a and REDIS_AUTH_FILE=/b are two names of one setting and have different values; remove one of them.',
  ]);
});

test('an alias and the file under the neutral name contradict each other', () => {
  expect(problemsOf({ KVSTORE_AUTH_FILE: '/a', REDIS_AUTH: 'word' }, contents({ '/a': 'word' }))).toEqual([
    'REDIS_AUTH and KVSTORE_AUTH_FILE are both set; remove REDIS_AUTH to use the file, or KVSTORE_AUTH_FILE to use the variable.',
  ]);
});

test('contents that are not a value are rejected without being quoted', () => {
  const readFile = contents({ '/token': 'hidden-1', '/url': 'redis://ann:hidden-2@', '/headers': 'hidden-3' });
  const problems = problemsOf(
    {
      OPERATOR_TOKEN_FILE: '/token',
      KVSTORE_URL_FILE: '/url',
      BACKEND_TYPE: 'kvstore',
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS_FILE: '/headers',
    },
    readFile,
  );
  expect(problems).toEqual([
    'cannot use OPERATOR_TOKEN_FILE=/token: it must contain 16 to 1024 visible ASCII characters, without blanks.',
    expect.stringMatching(/^cannot use CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS_FILE=\/headers: it must contain /),
    expect.stringMatching(/^KVSTORE_URL_FILE is invalid with KVSTORE_TYPE=single: it is not the address of one server/),
  ]);
  expect(problems.join()).not.toContain('hidden');
});

test('a secret that was set instead of the path of its file is not shown', () => {
  for (const text of ['hidden-word', 'redis://ann:hidden@h:1', 'hidden/word']) {
    expect(problemsOf({ KVSTORE_URL_FILE: text }, contents({}))).toEqual([
      'cannot use KVSTORE_URL_FILE (not shown: it does not begin with / or ./): it cannot be read (ENOENT).',
    ]);
  }
});

test('an address in a file selects the store, and settings without effect are named by the variable of their file', () => {
  const readFile = contents({ '/url': 'h:1', '/auth': 'word' });
  const { settings, warnings } = readSettings({ REDIS_URL_FILE: '/url', REDIS_SENTINEL_AUTH_FILE: '/auth' }, readFile);
  expect(settings.backendType).toBe('kvstore');
  expect(warnings).toEqual(['REDIS_SENTINEL_AUTH_FILE has no effect, because KVSTORE_TYPE is single by default.']);
});

test('a name that is close to that of a file causes a warning', () => {
  expect(readSettings({ REDIS_AUHT_FILE: '/x' }).warnings).toEqual([
    'REDIS_AUHT_FILE is not a setting and has no effect; did you mean REDIS_AUTH_FILE?',
  ]);
});
