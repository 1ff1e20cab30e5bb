import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { status as Code } from '@grpc/grpc-js';
import { newAuthority } from '../support/data/certificates';
import { everySecret, otlpTo, settingRows } from '../support/data/secret-settings';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { observableOutput } from '../support/processes/observable-output';
import { AdsServer, type AdsServerStream, SnapshotCache } from '../support/servers/ads-server';
import {
  type QuotingPeer,
  quotingGrpcCollector,
  quotingHttpCollector,
  quotingProxy,
} from '../support/servers/quoting-peers';
import {
  type Environment,
  type Reach,
  closedAddress,
  expectNoSecrets,
  expectNoneQuoted,
  secrets,
  unreachable,
} from './no-secrets';

const NOWHERE = '127.0.0.1:1';
const START = { BACKEND_TYPE: 'memory', FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' };

const tracesRejected: Reach = async (weir) => {
  await weir.line(/serving/);
  await observableOutput(weir);
  await weir.line(/cannot export traces/);
};

describe('the output contains no secret', () => {
  it('while no server is reachable', async () => {
    const [store, perSecond] = [await closedAddress(), await closedAddress()];
    await expectNoSecrets(everySecret(secrets, { store, perSecond, xds: NOWHERE, otlp: NOWHERE }), async (weir) => {
      await unreachable(weir);
      await weir.line(/no stream from the xDS server/);
    });
  });

  it.each(['sentinel', 'cluster'] as const)('when stores (%s) quote the requests', (type) => expectNoneQuoted(type));

  it('when a management server quotes the headers that it rejects', async () => {
    const rejections = new QuotingRejections();
    await using xds = await AdsServer.start({ cache: rejections });
    const env = everySecret(secrets, { store: NOWHERE, perSecond: NOWHERE, xds: xds.address, otlp: NOWHERE });
    await expectNoSecrets({ ...env, BACKEND_TYPE: 'memory' }, (weir) => weir.line(/UNAUTHENTICATED: refused/));
    expect(secrets.shownIn(rejections.quoted.join('\n'))).toHaveLength(3);
  });

  it.each<[protocol: string, collector: () => Promise<QuotingPeer>]>([
    ['http', quotingHttpCollector],
    ['grpc', quotingGrpcCollector],
  ])('when a collector over %s quotes the headers that it rejects', async (TRACING_EXPORTER_PROTOCOL, collector) => {
    await using otlp = await collector();
    const more = { OTEL_EXPORTER_OTLP_TIMEOUT: '20000', TRACING_EXPORTER_PROTOCOL };
    await expectNoSecrets({ ...START, ...otlpTo(secrets, otlp.address), ...more }, tracesRejected);
    const received = secrets.shownIn(otlp.received.join('\n'));
    const names = ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'];
    expect(received).toEqual(expect.arrayContaining(names));
  });

  it('when a proxy quotes the credentials that it rejects', async () => {
    await using proxy = await quotingProxy();
    const closed = await closedAddress();
    const env = everySecret(secrets, { store: closed, perSecond: closed, xds: closed, otlp: closed });
    const http_proxy = `http://ann:${secrets.inUrl('http_proxy')}@${proxy.address}`;
    await expectNoSecrets({ ...env, http_proxy, TRACING_EXPORTER_PROTOCOL: 'grpc' }, (weir) =>
      weir.line(/no stream from the xDS server/),
    );
    expect(secrets.shownIn(proxy.received.join('\n'))).toEqual(['http_proxy']);
  });
});

describe('the output contains no secret that is misplaced', () => {
  const folder = new TemporaryFolder();
  const authority = newAuthority();
  afterAll(() => {
    authority.dispose();
    folder[Symbol.dispose]();
  });
  const issued = authority.issue('localhost');
  const key = folder.write('key.yaml', secrets.file('key', issued.key));
  const cert = folder.write('cert.pem', issued.cert);
  const broken = folder.write(
    'broken.pem',
    secrets.file('broken key', authority.issue('other').key).replace(/^MI/m, '!!'),
  );

  const address = `redis://ann:${secrets.inUrl('address')}@127.0.0.1`;
  const grpc = { ...START, GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: cert, GRPC_SERVER_TLS_KEY: key };
  const store = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: NOWHERE, KVSTORE_TLS: 'true' };
  const xds = { ...START, CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: NOWHERE };
  const xdsTls = { ...xds, CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true' };
  const traces = { ...START, ...otlpTo(secrets, NOWHERE), TRACING_EXPORTER_PROTOCOL: 'grpc' };
  const dns = `dns://ann:${secrets.inUrl('dns')}@127.0.0.1:1/h:1`;
  const notCertificate = /is not a certificate/;
  const tlsFiles = /cannot use the TLS files/;

  it.each<[where: string, env: Environment, expected: RegExp]>([
    [
      'in every setting',
      Object.fromEntries(settingRows.map(({ name }) => [name, `${address}:x`])),
      /PUSHSTATS_HOST[^]*TRACING_ENABLED/,
    ],
    ['in the name server of the xDS server', { ...xds, CONFIG_GRPC_XDS_SERVER_URL: dns }, /no stream from the xDS/],
    [
      'in headers for traces that are invalid',
      { ...traces, OTEL_EXPORTER_OTLP_HEADERS: `x-key=${secrets.inUrl('key')}%0A` },
      /illegal characters/,
    ],
    ['in an endpoint for traces that is invalid', { ...traces, ...otlpTo(secrets, 'h:port') }, /cannot run|OTLP/],
    ['as the authority of callers', { ...grpc, GRPC_CLIENT_TLS_CACERT: key }, notCertificate],
    ['as the authority of the store', { ...store, KVSTORE_TLS_CACERT: key }, tlsFiles],
    [
      'as the broken key for the store',
      { ...store, KVSTORE_TLS_CLIENT_CERT: cert, KVSTORE_TLS_CLIENT_KEY: broken },
      tlsFiles,
    ],
    ['as the authority of the xDS server', { ...xdsTls, CONFIG_GRPC_XDS_SERVER_TLS_CACERT: key }, notCertificate],
    ['as the mapping file of metrics', { ...START, PULLMETRICS_MAPPER_YAML: key }, /cannot be used/],
    [
      'as a rule file',
      { RUNTIME_ROOT: folder.base, RUNTIME_APPDIRECTORY: '.', RUNTIME_WATCH_ROOT: 'false' },
      /key\.yaml/,
    ],
  ])('%s', async (_, env, expected) =>
    expectNoSecrets(env, (weir) => weir.until(`output like ${String(expected)}`, () => expected.test(weir.output))),
  );

  const everywhere = everySecret(secrets, { store: NOWHERE, perSecond: NOWHERE, xds: NOWHERE, otlp: NOWHERE });
  it.each([
    ['weir-check', ['-config_dir', folder.base, '-json']],
    ['weir-client', ['-address', NOWHERE, '-grpc-use-tls', '-grpc-cert-file', key, '-grpc-key-file', broken]],
    ['weir-client', ['-address', `http://ann:${secrets.inUrl('dial')}@${NOWHERE}`]],
  ])('in the arguments of %s: %j', (program, args) => {
    const request = program === 'weir-client' ? ['-domain', 'shop', '-descriptors', 'key=a'] : [];
    const path = join(__dirname, '../../dist/cli', `${program}.js`);
    const { stdout, stderr } = spawnSync(process.execPath, [path, ...args, ...request], { env: everywhere });
    const output = String(stdout) + String(stderr);
    expect(output).toMatch(/key\.yaml|connect|TLS files/);
    expect(secrets.shownIn(output)).toEqual([]);
  });
});

/** Ends every stream with a status that quotes its headers, also decoded from base64. */
class QuotingRejections extends SnapshotCache {
  readonly quoted: string[] = [];

  override serve(stream: AdsServerStream): void {
    const { metadata } = stream;
    const [key, basic] = [metadata.get('key-bin')[0], metadata.get('proxy-authorization')[0]];
    const bare = Buffer.from(String(basic).replace('Basic ', ''), 'base64').toString();
    const details = `refused: ${JSON.stringify(metadata.getMap())}, that is ${bare} and ${String(key)}`;
    this.quoted.push(details);
    stream.end({ code: Code.UNAUTHENTICATED, details, metadata });
  }
}
