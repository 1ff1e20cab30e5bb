import { listSettings } from '../../src/settings/list-settings';
import { readSettings } from '../../src/settings/read-settings';
import { settingsTable } from '../../src/settings/table/settings-table';

function lineOf(environment: Record<string, string>, name: string) {
  return listSettings(readSettings(environment)).find((line) => line.name === name);
}

it('every setting is listed, with its default', () => {
  const names = settingsTable.flatMap(({ settings }) => settings.map((row): string => row.name));
  expect(listSettings(readSettings({})).map(({ name }) => name)).toEqual(names);
  expect(lineOf({}, 'GRPC_MAX_CONNECTION_AGE')).toEqual({
    name: 'GRPC_MAX_CONNECTION_AGE',
    source: 'default',
    value: '24h',
  });
  expect(lineOf({}, 'GRPC_UDS')).toEqual({ name: 'GRPC_UDS', source: 'default', value: null });
});

it('a setting of the environment is listed by the variable that sets it', () => {
  expect(lineOf({ USE_STATSD: 'TRUE' }, 'USE_STATSD')).toEqual({
    name: 'USE_STATSD',
    source: 'environment',
    value: 'true',
  });
});

it('the variables of mogrifiers are listed, with and without tags', () => {
  const prefix = 'DOG_STATSD_MOGRIFIER_';
  const environment = {
    USE_DOG_STATSD: 'true',
    USE_DOG_STATSD_MOGRIFIERS: 'domain,plain',
    [`${prefix}DOMAIN_PATTERN`]: '^ratelimit\\.(.*)$',
    [`${prefix}DOMAIN_NAME`]: 'ratelimit',
    [`${prefix}DOMAIN_TAGS`]: 'domain:$1,kind:rule',
    [`${prefix}PLAIN_PATTERN`]: '^x$',
    [`${prefix}PLAIN_NAME`]: 'y',
  };
  expect(listSettings(readSettings(environment)).filter(({ name }) => name.startsWith(prefix))).toEqual([
    { name: `${prefix}DOMAIN_PATTERN`, source: 'environment', value: '^ratelimit\\.(.*)$' },
    { name: `${prefix}DOMAIN_NAME`, source: 'environment', value: 'ratelimit' },
    { name: `${prefix}DOMAIN_TAGS`, source: 'environment', value: 'domain:$1,kind:rule' },
    { name: `${prefix}PLAIN_PATTERN`, source: 'environment', value: '^x$' },
    { name: `${prefix}PLAIN_NAME`, source: 'environment', value: 'y' },
    { name: `${prefix}PLAIN_TAGS`, source: 'default', value: null },
  ]);
});

it('secrets are masked', () => {
  const environment = {
    BACKEND_TYPE: 'redis',
    REDIS_URL: 'redis://user:hidden-one@host:6379',
    REDIS_AUTH: 'hidden-two',
    EXTRA_TAGS: 'a:https://user:hidden-three@host',
  };
  expect(lineOf(environment, 'REDIS_URL')?.value).toBe('redis://***@host:6379');
  expect(lineOf(environment, 'REDIS_AUTH')?.value).toBe('***');
  expect(JSON.stringify(listSettings(readSettings(environment)))).not.toContain('hidden');
});
