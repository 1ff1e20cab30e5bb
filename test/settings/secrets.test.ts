import { secretsOf } from '../../src/settings/variables/secrets';

function base64(text: string) {
  return Buffer.from(text).toString('base64');
}

describe('secretsOf', () => {
  test.each<[what: string, environment: Record<string, string>, secrets: readonly string[]]>([
    ['passwords', { KVSTORE_AUTH: 'word' }, ['word']],
    ['passwords under an alias', { REDIS_PERSECOND_SENTINEL_AUTH: 'word' }, ['word']],
    [
      'a user with a password, and the password alone',
      { KVSTORE_AUTH: 'ann:pass:word' },
      ['ann:pass:word', 'pass:word'],
    ],
    [
      'credentials in the address of a store, encoded and decoded',
      { REDIS_URL: 'redis://ann:a%2Fb@h:1' },
      ['ann:a%2Fb', 'ann:a/b', 'a%2Fb', 'a/b'],
    ],
    [
      'credentials in each address of a list',
      { KVSTORE_URL: 'm,redis://:a@h:1,redis://:b@h:2' },
      [':a', 'a', ':b', 'b'],
    ],
    ['passwords that contain delimiters of an address', { KVSTORE_URL: 'redis://:a@,b@h:1' }, [':a@,b', 'a@,b']],
    ['the password in the query of an address', { KVSTORE_URL: 'redis://h:1?db=1&password=a%40&x=1' }, ['a%40', 'a@']],
    ['credentials in a variable that is not a setting', { https_proxy: 'http://ann:a@h:1' }, ['ann:a', 'a']],
    [
      'headers, with the token and the credentials in them',
      { CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `key:a,authorization:Bearer b,x:Basic ${base64('ann:c')}` },
      ['a', 'Bearer b', 'b', `Basic ${base64('ann:c')}`, base64('ann:c'), 'ann:c', 'c'],
    ],
    ['headers of the trace exporter', { OTEL_EXPORTER_OTLP_HEADERS: 'x=Bearer%20a,y=b%3D' }, ['Bearer a', 'a', 'b=']],
    [
      'nothing in an environment without secrets',
      { KVSTORE_URL: 'h:1', PATH: '/a@b', TRACING_SERVICE_NAME: 'http://h/@' },
      [],
    ],
  ])('returns %s: %j', (_, environment, secrets) => {
    expect([...secretsOf(environment)].sort()).toEqual([...secrets].sort());
  });
});
