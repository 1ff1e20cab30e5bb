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
