import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChecks } from '../../src/main/start-checks';
import { SettingsError, readSettings } from '../../src/settings/read-settings';
import { env } from '../settings/environments';

const folder = mkdtempSync(join(tmpdir(), 'weir-start-'));
afterAll(() => rmSync(folder, { recursive: true }));

const MACHINE = { files: 1024, memory: 256 * 1024 ** 2 };

/** The problems and warnings of a start on a small machine. */
function startWith(text: string): { readonly problems: readonly string[]; readonly warnings: readonly string[] } {
  try {
    const { warnings } = readSettings(env(text), undefined, startChecks(MACHINE));
    return { problems: [], warnings };
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    return { problems: error.problems, warnings: [] };
  }
}

describe('a start reports all of its problems at once', () => {
  it('missing files of every kind, patterns and values', () => {
    const none = `${folder}/none`;
    const { problems } = startWith(
      `GRPC_SERVER_USE_TLS=1 GRPC_SERVER_TLS_CERT=${none}.crt GRPC_SERVER_TLS_KEY=${none}.key CONFIG_TYPE=GRPC_XDS_SOTW ` +
        `CONFIG_GRPC_XDS_SERVER_USE_TLS=1 CONFIG_GRPC_XDS_SERVER_TLS_CACERT=${none}.xds REDIS_URL=rediss://a:1 ` +
        `REDIS_TLS_CACERT=${none}.redis USE_PROMETHEUS=1 PROMETHEUS_MAPPER_YAML=${none}.yaml DECISION_LOG=all ` +
        `DECISION_LOG_OUTPUT=${none}/log USE_DOG_STATSD=1 DOG_STATSD_MOGRIFIERS=a USE_DOG_STATSD_MOGRIFIERS=a ` +
        'DOG_STATSD_MOGRIFIER_A_PATTERN=( DOG_STATSD_MOGRIFIER_A_NAME=x PORT=-1',
    );
    expect(problems.map((problem) => /^(?:cannot use )?(\w+)/.exec(problem)?.[1])).toEqual([
      'PORT',
      'DOG_STATSD_MOGRIFIER_A_PATTERN',
      'GRPC_SERVER_TLS_CERT',
      'GRPC_SERVER_TLS_KEY',
      'CONFIG_GRPC_XDS_SERVER_TLS_CACERT',
      'REDIS_TLS_CACERT',
      'PROMETHEUS_MAPPER_YAML',
      'DECISION_LOG_OUTPUT',
    ]);
    expect(problems[2]).toBe(`cannot use GRPC_SERVER_TLS_CERT=${none}.crt: it cannot be read (ENOENT).`);
  });

  it('files that are not what they should be', () => {
    const text = join(folder, 'text');
    writeFileSync(text, 'mappings: [');
    const { problems } = startWith(
      `MEMCACHE_HOST_PORT=a:1 MEMCACHE_TLS=1 MEMCACHE_TLS_CACERT=${text} USE_PROMETHEUS=1 PROMETHEUS_MAPPER_YAML=${text}`,
    );
    expect(problems).toEqual([
      `cannot use the TLS files: MEMCACHE_TLS_CACERT=${text} is not a certificate in PEM format.`,
      expect.stringContaining(`PROMETHEUS_MAPPER_YAML=${text} cannot be used: `),
    ]);
  });

  it('but not files of settings that have no effect', () => {
    const { problems, warnings } = startWith(
      'GRPC_SERVER_TLS_CERT=/none REDIS_TLS_CACERT=/none REDIS_URL=a:1 PROMETHEUS_MAPPER_YAML=/none ' +
        'DECISION_LOG_OUTPUT=/none/x',
    );
    expect(problems).toEqual([]);
    expect(warnings.map((warning) => warning.split(' ').slice(1, 4).join(' '))).toEqual(
      Array.from({ length: 4 }, () => 'has no effect,'),
    );
  });
});

it.each([
  ['REDIS_URL=a:1 REDIS_POOL_SIZE=961', 'REDIS_POOL_SIZE is 961, more connections', 'at most 960'],
  [
    'REDIS_URL=a:1,b:1 REDIS_TYPE=cluster REDIS_POOL_SIZE=481',
    'REDIS_POOL_SIZE is 481 for each of 2 nodes',
    'at most 480',
  ],
  [
    'REDIS_URL=a:1 REDIS_PERSECOND=1 REDIS_PERSECOND_URL=b:1 REDIS_PERSECOND_POOL_SIZE=2000',
    'REDIS_PERSECOND_POOL_SIZE is 2000, more',
    'at most 960',
  ],
])('%s is rejected where the process may open 1,024 files', (text, problem, advice) => {
  const { problems } = startWith(text);
  expect(problems).toEqual([expect.stringContaining(problem)]);
  expect(problems[0]).toContain(advice);
  expect(startWith(text.replace(/\d+$/, '100')).problems).toEqual([]);
});

it.each([
  'BACKEND_TYPE=memory MEMORY_MAX_BYTES=268435457',
  'LOCAL_CACHE_SIZE_IN_BYTES=1000000000',
  'STATS_MAX_RUNTIME_KEYS=1000000',
])('%s causes a warning where the process may use 256 MiB', (text) => {
  const name = /(\w+)=\d+$/.exec(text)![1]!;
  const { warnings } = startWith(text);
  expect(warnings).toEqual([
    expect.stringMatching(new RegExp(`^${name} is \\d+: that may take more memory than the 256 MiB`)),
  ]);
  expect(startWith(text.replace(/\d+$/, '2000000').replace(/KEYS=\d+/, 'KEYS=1000')).warnings).toEqual([]);
});
