import { secretsOf } from '../../src/settings/variables/secrets';

function base64(text: string) {
  return Buffer.from(text).toString('base64');
}

describe('the secrets of an environment', () => {
  test.each<[what: string, environment: Record<string, string>, secrets: readonly string[]]>([
    ['are passwords', { KVSTORE_AUTH: 'word' }, ['word']],
    ['under either name', { REDIS_PERSECOND_SENTINEL_AUTH: 'word' }, ['word']],
    ['with a user and without', { KVSTORE_AUTH: 'ann:pass:word' }, ['ann:pass:word', 'pass:word']],
    ['in the address of a store', { REDIS_URL: 'redis://ann:a%2Fb@h:1' }, ['ann:a%2Fb', 'ann:a/b', 'a%2Fb', 'a/b']],
    ['in each of a list', { KVSTORE_URL: 'm,redis://:a@h:1,redis://:b@h:2' }, [':a', 'a', ':b', 'b']],
    ['also where they hold what ends an address', { KVSTORE_URL: 'redis://:a@,b@h:1' }, [':a@,b', 'a@,b']],
    ['in the query of an address', { KVSTORE_URL: 'redis://h:1?db=1&password=a%40&x=1' }, ['a%40', 'a@']],
    ['in an address that is no setting', { https_proxy: 'http://ann:a@h:1' }, ['ann:a', 'a']],
    [
      'in headers',
      { CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `key:a,authorization:Bearer b,x:Basic ${base64('ann:c')}` },
      ['a', 'Bearer b', 'b', `Basic ${base64('ann:c')}`, base64('ann:c'), 'ann:c', 'c'],
    ],
    ['in headers of traces', { OTEL_EXPORTER_OTLP_HEADERS: 'x=Bearer%20a,y=b%3D' }, ['Bearer a', 'a', 'b=']],
    ['and nothing of what is none', { KVSTORE_URL: 'h:1', PATH: '/a@b', TRACING_SERVICE_NAME: 'http://h/@' }, []],
  ])('%s: %j', (_, environment, secrets) => {
    expect([...secretsOf(environment)].sort()).toEqual([...secrets].sort());
  });
});
