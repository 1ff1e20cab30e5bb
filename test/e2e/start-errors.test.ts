import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const MAIN = join(__dirname, '../../dist/main.js');
const RULES = { RUNTIME_ROOT: join(__dirname, '../../examples'), RUNTIME_WATCH_ROOT: 'false', DISABLE_STATS: 'true' };
const MEMORY = { BACKEND_TYPE: 'memory' };
const PORTS = { DEBUG_HOST: '127.0.0.1', PORT: '0', GRPC_PORT: '0', DEBUG_PORT: '0' };

/** The standard error of the program, which must exit with 1. */
async function failToStart(env: Readonly<Record<string, string>>): Promise<string> {
  const run = promisify(execFile)(process.execPath, [MAIN], { env, timeout: 60_000 });
  const error = await run.then(
    () => undefined,
    (failure: unknown) => failure as { code: unknown; stderr: string },
  );
  expect(error?.code).toBe(1);
  return error?.stderr ?? '';
}

const FILE = '/none/such.file';
const NO_FILE = `ENOENT: no such file or directory, open '${FILE}'`;

describe('what prevents the service from starting', () => {
  it.each<readonly [string, Readonly<Record<string, string>>]>([
    [
      `PROMETHEUS_MAPPER_YAML=${FILE} cannot be used: ${NO_FILE}`,
      { ...MEMORY, DISABLE_STATS: 'false', USE_PROMETHEUS: 'true', PROMETHEUS_MAPPER_YAML: FILE },
    ],
    [
      'DOG_STATSD_MOGRIFIER_A_PATTERN is not a valid regular expression: missing closing ): (',
      {
        ...MEMORY,
        DISABLE_STATS: 'false',
        USE_DOG_STATSD: 'true',
        USE_DOG_STATSD_MOGRIFIERS: 'a',
        DOG_STATSD_MOGRIFIER_A_PATTERN: '(',
        DOG_STATSD_MOGRIFIER_A_NAME: 'x',
      },
    ],
    [
      'REDIS_SOCKET_TYPE is unix, but REDIS_URL is host and port',
      { REDIS_URL: 'localhost:1', REDIS_SOCKET_TYPE: 'unix' },
    ],
    [
      'KVSTORE_PERSECOND_SOCKET_TYPE is tcp, but REDIS_PERSECOND_URL is a socket path',
      {
        KVSTORE_URL: 'localhost:1',
        REDIS_PERSECOND: 'true',
        REDIS_PERSECOND_URL: '/s',
        KVSTORE_PERSECOND_SOCKET_TYPE: 'tcp',
      },
    ],
    [
      `cannot read the TLS file REDIS_TLS_CACERT=${FILE}: ${NO_FILE}`,
      { REDIS_URL: 'localhost:1', REDIS_TLS: 'true', REDIS_TLS_CACERT: FILE },
    ],
    [
      `TLS of the gRPC listener: GRPC_SERVER_TLS_CERT=${FILE} cannot be read: ENOENT`,
      { ...MEMORY, GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: FILE, GRPC_SERVER_TLS_KEY: FILE },
    ],
  ])('is stated once, with the variable that was set: %s', async (reason, env) => {
    const stderr = await failToStart({ ...RULES, ...PORTS, ...env });
    const [line = '', ...others] = stderr
      .trimEnd()
      .split('\n')
      .filter((each) => !each.includes(' level=info '));
    expect(others).toEqual([]);
    expect(line).toMatch(/^time="[^"]+" level=fatal msg=/);
    expect(JSON.parse(line.slice(line.indexOf('msg=') + 4))).toBe(`the service cannot run: ${reason}`);
  });

  it('is one JSON object for each invalid setting with LOG_FORMAT=json, without secrets', async () => {
    const secret = 'correct-horse';
    const stderr = await failToStart({
      LOG_FORMAT: 'JSON',
      REDIS_AUTH: secret,
      KVSTORE_URL: 'a:1',
      REDIS_URL: `redis://:${secret}@a:1`,
      PORT: secret,
      SHADOW_MODE: 'maybe',
    });
    expect(stderr).not.toContain(secret);
    const records = stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    for (const record of records) expect(record).toMatchObject({ level: 'fatal', '@timestamp': expect.any(String) });
    expect(records.map((record) => record['@message'])).toEqual([
      'invalid setting: PORT="***" is invalid; allowed: whole number, 0 to 65535.',
      'invalid setting: SHADOW_MODE="maybe" is invalid; allowed: true or false.',
      'invalid setting: KVSTORE_URL="a:1" and REDIS_URL="redis://***@a:1" are two names of one setting and have different values; remove one of them.',
    ]);
  });

  it('includes a path of GRPC_UDS that is longer than the system accepts', async () => {
    const path = `/${'x'.repeat(200)}`;
    expect(await failToStart({ ...RULES, ...MEMORY, GRPC_UDS: path })).toMatch(
      /GRPC_UDS="\/x+…" is invalid; allowed: file path \(the path of a socket may have at most \d+ bytes on this system\)\.\n$/,
    );
  });
});
