import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newAuthority } from '../support/data/certificates';
import { observableOutput } from '../support/processes/observable-output';
import { everySecret, settingRows, tracesTo, underGoNames } from '../support/data/secret-settings';
import { Secrets } from '../support/data/secrets';
import { WeirProcess } from '../support/processes/weir-process';

type Environment = Readonly<Record<string, string>>;

const secrets = new Secrets();
const NOWHERE = '127.0.0.1:1';
const ALL = everySecret(secrets, { store: NOWHERE, perSecond: NOWHERE, xds: NOWHERE, otlp: NOWHERE });

/** Runs the service until its output matches, stops it unless it has exited, and expects no secret in its output. */
async function expectNoSecrets(env: Environment, expected: RegExp): Promise<void> {
  await using weir = await WeirProcess.start({
    env: { LOG_LEVEL: 'debug', GRPC_VERBOSITY: 'DEBUG', GRPC_TRACE: 'all', DEBUG: '*', ...env },
    awaitServing: false,
  });
  await weir.until(`output like ${String(expected)}`, () => expected.test(weir.output));
  const output = weir.isRunning ? await observableOutput(weir) : '';
  weir.signal('SIGTERM');
  await weir.exited;
  expect(secrets.shownIn(output + weir.output)).toEqual([]);
}

describe('the output contains no secret with', () => {
  function at(name: string) {
    return `redis://ann:${secrets.inUrl(name)}@127.0.0.1`;
  }
  const everywhere = Object.fromEntries(settingRows.map(({ name }) => [name, `${at(name)}:x`]));
  const stores = {
    BACKEND_TYPE: 'kvstore',
    KVSTORE_URL: NOWHERE,
    KVSTORE_PERSECOND: 'true',
    KVSTORE_PERSECOND_URL: NOWHERE,
  };
  const inMemory = { BACKEND_TYPE: 'memory', FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' };
  const traces = { ...tracesTo(secrets, NOWHERE), TRACING_EXPORTER_PROTOCOL: 'grpc' };
  const dns = secrets.inUrl('dns');
  const different = Object.fromEntries(
    Object.entries(ALL).map(([name, text]) => [name, `${text}x`.replaceAll('ann', 'bob')]),
  );

  it.each<[title: string, env: Environment, expected: RegExp]>([
    [
      'an address without a host, a list of several passwords, headers that gRPC cannot send, passwords as other values',
      {
        KVSTORE_URL: `redis://ann:${secrets.of('url')}`,
        KVSTORE_PERSECOND_URL: `${at('one')}:1,${at('other')}:x`,
        KVSTORE_PERSECOND_TYPE: 'cluster',
        CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `key:${secrets.of('xds')}é`,
        KVSTORE_AUTH: secrets.of('auth'),
        KVSTORE_POOL_SIZE: secrets.of('auth'),
      },
      /other than printable ASCII[^]*KVSTORE_POOL_SIZE[^]*KVSTORE_URL is invalid[^]*KVSTORE_PERSECOND_URL is invalid/,
    ],
    [
      'an address with a broken escape',
      { KVSTORE_URL: `redis://ann:%zz${secrets.inUrl('url')}@h:1`, KVSTORE_PERSECOND: 'false' },
      /KVSTORE_URL: the address has a % that is not followed by two hexadecimal digits/,
    ],
    [
      'names and aliases that differ, and headers without a colon',
      {
        ...{ ...ALL, ...underGoNames(different) },
        KVSTORE_PERSECOND_URL: `redis://ann:${secrets.of('without a host')}`,
        CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: secrets.of('xds'),
      },
      /HEADERS[^]*KVSTORE_URL.*REDIS_URL[^]*KVSTORE_AUTH.*REDIS_AUTH[^]*KVSTORE_PERSECOND_AUTH.*REDIS_PERSECOND_AUTH/,
    ],
    ['an address with a password in every setting', everywhere, /PUSHSTATS_HOST[^]*TRACING_ENABLED/],
    [
      'an xDS server behind a name server with a password',
      { ...inMemory, CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: `dns://ann:${dns}@127.0.0.1:1/h:1` },
      /no stream from the xDS server/,
    ],
    [
      'invalid gRPC headers for traces',
      { ...inMemory, ...traces, OTEL_EXPORTER_OTLP_HEADERS: `x-key=${secrets.inUrl('key')}%0A` },
      /illegal characters/,
    ],
    [
      'an invalid endpoint for traces',
      { ...inMemory, ...tracesTo(secrets, 'h:port'), TRACING_EXPORTER_PROTOCOL: 'grpc' },
      /cannot run|OTLP/,
    ],
  ])('%s', async (_, env, expected) => expectNoSecrets({ ...stores, ...env }, expected));
});

describe('the output contains no private key that is misplaced', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-keys-'));
  function file(name: string, text: string): string {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  }
  const authority = newAuthority();
  const issued = authority.issue('localhost');
  const key = file('key.yaml', secrets.file('key', issued.key));
  const cert = file('cert.pem', issued.cert);
  const broken = file('broken.pem', secrets.file('broken key', authority.issue('other').key).replace(/^MI/m, '!!'));
  afterAll(() => {
    authority.dispose();
    rmSync(folder, { recursive: true });
  });

  const grpc = { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: cert, GRPC_SERVER_TLS_KEY: key };
  const store = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: NOWHERE, KVSTORE_TLS: 'true' };
  const xds = {
    CONFIG_TYPE: 'GRPC_XDS_SOTW',
    CONFIG_GRPC_XDS_SERVER_URL: NOWHERE,
    CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
  };
  const start = { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' };

  it.each<[where: string, env: Environment, expected: RegExp]>([
    [
      'as the certificate authority of callers',
      { ...start, ...grpc, GRPC_CLIENT_TLS_CACERT: key },
      /is not a certificate/,
    ],
    ['as the certificate of the listener', { ...start, ...grpc, GRPC_SERVER_TLS_CERT: key }, /is not a certificate/],
    ['as the broken key of the listener', { ...start, ...grpc, GRPC_SERVER_TLS_KEY: broken }, /is not/],
    ['as the certificate authority of the store', { ...store, KVSTORE_TLS_CACERT: key }, /cannot use the TLS files/],
    [
      'as the client certificate for the store',
      { ...store, KVSTORE_TLS_CLIENT_CERT: key, KVSTORE_TLS_CLIENT_KEY: key },
      /cannot use the TLS files/,
    ],
    [
      'as the broken client key for the store',
      { ...store, KVSTORE_TLS_CLIENT_CERT: cert, KVSTORE_TLS_CLIENT_KEY: broken },
      /cannot use the TLS files/,
    ],
    [
      'as the certificate authority of the xDS server',
      { ...xds, CONFIG_GRPC_XDS_SERVER_TLS_CACERT: key },
      /contains no certificate/,
    ],
    [
      'as the client certificate for the xDS server',
      { ...xds, CONFIG_GRPC_XDS_CLIENT_TLS_CERT: key, CONFIG_GRPC_XDS_CLIENT_TLS_KEY: key },
      /contains no certificate/,
    ],
    [
      'as the broken client key for the xDS server',
      { ...xds, CONFIG_GRPC_XDS_CLIENT_TLS_CERT: cert, CONFIG_GRPC_XDS_CLIENT_TLS_KEY: broken },
      /no stream from the xDS server/,
    ],
    [
      'as the mapping file of metrics',
      { ...start, USE_PULLMETRICS: 'true', PULLMETRICS_MAPPER_YAML: key },
      /cannot be used/,
    ],
    ['as a rule file', { RUNTIME_ROOT: folder, RUNTIME_APPDIRECTORY: '.', RUNTIME_WATCH_ROOT: 'false' }, /key\.yaml/],
  ])('%s', async (_, env, expected) => expectNoSecrets(env, expected));

  it.each([
    ['weir-check', ['-config_dir', folder]],
    ['weir-check', ['-config_dir', folder, '-format', 'json']],
    ['weir-client', ['-dial_string', NOWHERE, '-grpc-use-tls', '-grpc-server-ca-file', key]],
    ['weir-client', ['-dial_string', NOWHERE, '-grpc-use-tls', '-grpc-cert-file', key, '-grpc-key-file', broken]],
    ['weir-client', ['-dial_string', `http://ann:${secrets.inUrl('dial')}@${NOWHERE}`]],
  ])('in the arguments of %s: %j', async (program, args) => {
    const request = program === 'weir-client' ? ['-domain', 'shop', '-descriptors', 'key=a'] : [];
    const output = await new Promise<string>((resolve) => {
      const path = join(__dirname, '../../dist/cli', `${program}.js`);
      execFile(process.execPath, [path, ...args, ...request], { env: ALL }, (_, stdout, stderr) =>
        resolve(stdout + stderr),
      );
    });
    expect(output).toMatch(/key\.yaml|connect|TLS files/);
    expect(secrets.shownIn(output)).toEqual([]);
  });
});
