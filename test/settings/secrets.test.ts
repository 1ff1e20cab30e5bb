import { listSettings } from '../../src/settings/list-settings';
import { readSettings } from '../../src/settings/read-settings';
import { secretsOf, secretsOfText } from '../../src/settings/secrets';
import { settingRows } from '../support/data/secret-settings';
import { env, files, problemsOf, readAgain, valueOf } from './environments';

const SECRET = 'hunter2';
const secretRows = settingRows.filter(({ type }) => type.secret !== undefined);

/** Two values of a secret setting. */
function valuesOf(name: string): readonly [string, string] {
  if (name === 'OPERATOR_TOKENS')
    return ['a', 'b'].map((letter) => `${letter} view sha256:${letter.repeat(64)}`) as [string, string];
  if (name.endsWith('_TOKEN')) return ['hidden-token-of-tests', 'another-token-of-tests'];
  if (name.startsWith('OTEL_')) return ['x-key=hidden-1', 'x-key=hidden-2'];
  // A password with its user, a header, and an address.
  return ['hidden:1111', 'hidden:2222'];
}

describe.each(secretRows.map((row) => [row.name, row] as const))('%s_FILE', (name, row) => {
  const [one, other] = valuesOf(name);
  const file = `${name}_FILE`;
  function fromVariable(text: string): unknown {
    return valueOf(readSettings({ [name]: text }), name);
  }

  test('names the file that contains the value, under its own name and that of the alias', () => {
    for (const variable of [file, ...(row.alias === undefined ? [] : [`${row.alias}_FILE`])]) {
      const loaded = readSettings({ [variable]: '/one' }, files({ '/one': one }));
      expect(valueOf(loaded, name)).toEqual(fromVariable(one));
      expect([...loaded.given.values()]).toEqual([variable]);
      expect([...loaded.files.values()]).toMatchObject([{ variable, path: '/one' }]);
      expect(loaded.warnings.filter((warning) => warning.includes('is not a setting'))).toEqual([]);
      const listed = listSettings(loaded);
      expect(listed).toContainEqual(expect.objectContaining({ name: variable, source: 'file', value: '/one' }));
      expect(JSON.stringify(listed)).not.toContain(one);
    }
  });

  test('is rejected together with the variable of the value, and if the file cannot be read', () => {
    expect(problemsOf({ [file]: '/one', [name]: one }, files({ '/one': one }))).toContain(
      `${name} and ${file} are both set; remove ${name} to use the file, or ${file} to use the variable.`,
    );
    const problem = `cannot use ${file}=/none: it cannot be read (ENOENT).`;
    expect(problemsOf({ [file]: '/none' }, files({}))).toContain(problem);
  });

  test('is read again, and read and masked without surrounding blanks, unless it is a password', () => {
    const blanks = ` ${one} \n`;
    const contents: Record<string, string> = { '/file': blanks };
    const loaded = readSettings({ [file]: '/file' }, files(contents));
    const isPassword = name.endsWith('_AUTH');
    expect(secretsOfText(row, blanks)).toEqual(secretsOfText(row, isPassword ? blanks : one));
    contents['/file'] = other;
    expect(readAgain(loaded, name)).toEqual(fromVariable(other));
    expect(valueOf(loaded, name)).toEqual(isPassword ? blanks : fromVariable(one));
    delete contents['/file'];
    expect(() => readAgain(loaded, name)).toThrow(new Error('it cannot be read (ENOENT)'));
  });
});

describe('a secret in a file', () => {
  test.each([
    ['KVSTORE_AUTH_FILE=/a REDIS_AUTH_FILE=/a', []],
    ['KVSTORE_AUTH_FILE=/a REDIS_AUTH_FILE=/b', ['KVSTORE_AUTH_FILE=/a and REDIS_AUTH_FILE=/b are two names of one']],
    ['KVSTORE_AUTH_FILE=/a REDIS_AUTH=word', ['REDIS_AUTH and KVSTORE_AUTH_FILE are both set; remove REDIS_AUTH to']],
  ])('is set under one name only: %s', (text, problems) => {
    const found = problemsOf(env(text), files({ '/a': 'word', '/b': 'word' }));
    expect(found).toEqual(problems.map((problem) => expect.stringContaining(problem)));
  });

  test('is rejected without being quoted if it is not valid', () => {
    const contents = files({ '/token': 'hidden-1', '/url': 'redis://ann:hidden-2@', '/headers': 'hidden-3' });
    const headers = 'CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS_FILE=/headers';
    const problems = problemsOf(env(`OPERATOR_TOKEN_FILE=/token KVSTORE_URL_FILE=/url ${headers}`), contents);
    expect(problems).toEqual([
      'cannot use OPERATOR_TOKEN_FILE=/token: it must contain 16 to 1024 visible ASCII characters, without blanks.',
      expect.stringContaining(`cannot use ${headers}: it must contain `),
      expect.stringMatching(/^KVSTORE_URL_FILE is invalid with KVSTORE_TYPE=single: it is not the address/),
    ]);
    expect(problems.join()).not.toContain('hidden');
  });

  test('is not shown if it is set as the path', () => {
    const problem =
      'cannot use KVSTORE_URL_FILE (not shown: it does not begin with / or ./): it cannot be read (ENOENT).';
    expect(problemsOf(env('KVSTORE_URL_FILE=hidden/word'), files({}))).toEqual([problem]);
  });

  test('selects the store like its variable, and is named by the variable of the file in warnings', () => {
    const environment = env('REDIS_URL_FILE=/url REDIS_SENTINEL_AUTH_FILE=/auth');
    const loaded = readSettings(environment, files({ '/url': 'h:1', '/auth': 'word' }));
    expect(valueOf(loaded, 'BACKEND_TYPE')).toBe('kvstore');
    const reason = 'because KVSTORE_TYPE is single by default.';
    expect(loaded.warnings).toEqual([`REDIS_SENTINEL_AUTH_FILE has no effect, ${reason}`]);
  });
});

function base64(text: string) {
  return Buffer.from(text).toString('base64');
}

test.each<[what: string, environment: Record<string, string>, secrets: readonly string[]]>([
  ['passwords', { KVSTORE_AUTH: 'word', REDIS_SENTINEL_AUTH: 'ann:a:b' }, ['word', 'ann:a:b', 'a:b']],
  ['credentials in an address', { REDIS_URL: 'redis://ann:a%2Fb@h:1' }, ['ann:a%2Fb', 'ann:a/b', 'a%2Fb', 'a/b']],
  ['credentials in a list', { KVSTORE_URL: 'm,redis://:a@h:1,redis://:b@h:2' }, [':a', 'a', ':b', 'b']],
  ['passwords with delimiters of an address', { KVSTORE_URL: 'redis://:a@,b@h:1' }, [':a@,b', 'a@,b']],
  ['the password in a query', { KVSTORE_URL: 'redis://h:1?db=1&password=a%40&x=1' }, ['a%40', 'a@']],
  ['credentials in a variable that is not a setting', { https_proxy: 'http://ann:a@h:1' }, ['ann:a', 'a']],
  [
    'headers, with the token and the credentials in them',
    { CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `key:a,authorization:Bearer b,x:Basic ${base64('ann:c')}` },
    ['a', 'Bearer b', 'b', `Basic ${base64('ann:c')}`, base64('ann:c'), 'ann:c', 'c'],
  ],
  ['headers of the exporter', { OTEL_EXPORTER_OTLP_HEADERS: 'x=Bearer%20a,y=b%3D' }, ['Bearer a', 'a', 'b=']],
  ['nothing else', { KVSTORE_URL: 'h:1', PATH: '/a@b', TRACING_SERVICE_NAME: 'http://h/@' }, []],
])('the secrets of an environment are %s: %j', (_, environment, secrets) => {
  expect([...secretsOf(environment)].sort()).toEqual([...secrets].sort());
});

test.each([
  `KVSTORE_AUTH=${SECRET} REDIS_AUTH=user:${SECRET}`,
  `KVSTORE_URL=redis://:p@${SECRET}@a:1 REDIS_URL=rediss://:${SECRET}/?,x@b:1,redis://:${SECRET}@c:1`,
  `KVSTORE_URL=redis://a:1?password=${SECRET} REDIS_URL=user:${SECRET}@a:1`,
  `KVSTORE_URL=redis://user:${SECRET} REDIS_URL=redis://a:1,redis://user:${SECRET}`,
  `KVSTORE_TYPE=cluster KVSTORE_URL=redis://:${SECRET}@a:1,,`,
  `KVSTORE_URL=http://:${SECRET}@a:1 KVSTORE_PERSECOND=true KVSTORE_PERSECOND_URL=${SECRET}@a`,
  `PORT=tcp://:${SECRET} PUSHSTATS_HOST=redis://user:${SECRET} LOG_LEVEL=x://y:1/?p=${SECRET}`,
  `PORT=http://user:${SECRET}@host PUSHSTATS_HOST=redis://:${SECRET}@a LOG_LEVEL=x://u:${SECRET}@y`,
  `CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=bad/name${SECRET}:${SECRET}`,
  `CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=a:${SECRET},a:${SECRET},:`,
])('no problem contains a secret: %s', (text) => {
  const problems = problemsOf(env(text));
  expect(problems).not.toEqual([]);
  expect(problems.join('\n')).not.toContain(SECRET);
});

test('no warning contains a secret, and a problem shows the rest of an address', () => {
  const headers = `CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS=a:${SECRET},a:${SECRET}`;
  const store = `BACKEND_TYPE=memory REDIS_AUTH=${SECRET} REDIS_URL=redis://:${SECRET}@a:1`;
  const { warnings } = readSettings(env(`${headers} ${store}`));
  expect(warnings).toContainEqual(expect.stringContaining('item 2 repeats a key'));
  expect(warnings.filter((warning) => warning.startsWith('REDIS_'))).toHaveLength(2);
  expect(warnings.join('\n')).not.toContain(SECRET);
  const problem = 'KVSTORE_URL="redis://***@a:1/2" and REDIS_URL="b:2" are two names of one setting and have different';
  expect(problemsOf(env('KVSTORE_URL=redis://u:p@a:1/2 REDIS_URL=b:2')).join()).toContain(problem);
});
