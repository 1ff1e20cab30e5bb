import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { Client, credentials } from '@grpc/grpc-js';
import { HealthCheckRequest } from '../../src/gen/grpc/health/v1/health';
import { ServerReflectionRequest, ServerReflectionResponse } from '../../src/gen/grpc/reflection/v1/reflection';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { hello } from '../grpc/http2/frames';
import { connectPlain } from '../grpc/http2/raw-client';
import { RateLimitClient, requestMessage } from '../support/clients/grpc-client';
import { Http2Connection } from '../support/clients/http2-connection';
import { type Authority, type Certificate, newAuthority } from '../support/data/certificates';
import { SocketFolder } from '../support/servers/unix-stream-receiver';
import { Shop } from './shop';

describe('the gRPC listener with TLS', () => {
  let authority: Authority;
  let own: string;
  let shop: Shop;
  beforeAll(async () => {
    authority = newAuthority();
    own = await mkdtemp(join(tmpdir(), 'weir-tls-'));
    writeFileSync(join(own, 'ca.crt'), authority.ca);
    put('localhost');
    shop = await Shop.start({
      env: {
        LOG_LEVEL: 'debug',
        DISABLE_STATS: 'true',
        GRPC_SERVER_USE_TLS: 'true',
        GRPC_SERVER_TLS_CERT: join(own, 'tls.crt'),
        GRPC_SERVER_TLS_KEY: join(own, 'tls.key'),
        GRPC_CLIENT_TLS_CACERT: join(own, 'ca.crt'),
        GRPC_CLIENT_TLS_SAN: 'proxy',
      },
    });
  });
  afterAll(async () => {
    await shop[Symbol.asyncDispose]();
    await rm(own, { recursive: true });
    authority.dispose();
  });

  /** Writes another certificate for the listener. */
  function put(...names: readonly string[]) {
    const { cert, key } = authority.issue(...names);
    // At once: the service rejects a certificate and a key that do not belong together.
    writeFileSync(join(own, 'tls.crt'), cert);
    writeFileSync(join(own, 'tls.key'), key);
  }
  async function call(pair?: Certificate) {
    const [ca, key, cert] = [authority.ca, pair?.key, pair?.cert].map((pem) => pem && Buffer.from(pem));
    using client = new RateLimitClient(
      `localhost:${shop.weir.ports.grpc}`,
      credentials.createSsl(ca || null, key || null, cert || null),
    );
    return (await client.shouldRateLimit('shop', ['user=x'])).overallCode;
  }
  /** The DNS names in the server's certificate on a new connection. */
  async function certificateNames() {
    const at = { host: '127.0.0.1', port: shop.weir.ports.grpc, servername: 'localhost' };
    const socket = connect({ ...at, ca: authority.ca, ALPNProtocols: ['h2'] }).on('error', () => undefined);
    await once(socket, 'secureConnect');
    const names = socket.getPeerCertificate().subjectaltname;
    socket.destroy();
    return names;
  }

  it('requires a client certificate of the CA with the configured name, and logs whom it rejects', async () => {
    expect(await call(authority.issue('proxy'))).toBe(1);
    await expect(call(authority.issue('other'))).rejects.toMatchObject({ code: 14 });
    await expect(call()).rejects.toMatchObject({ code: 14 });
    expect(await shop.weir.line(/gRPC connection or stream rejected.*peer did not return a certificate/)).toMatch(
      /level=debug .* kind=tls_handshake reason="peer did not return a certificate" peer=127\.0\.0\.1:\d+$/,
    );
    const others = newAuthority();
    await expect(call(others.issue('proxy'))).rejects.toMatchObject({ code: 14 });
    others.dispose();
  });

  it('uses a renewed certificate without a restart, and keeps the current one when the new one is invalid', async () => {
    put('localhost', 'renewed');
    await shop.weir.until('the new certificate', async () => (await certificateNames())?.includes('renewed'));
    await writeFile(join(own, 'tls.key'), 'broken');
    await shop.weir.line(/keeping the current ones: .*tls\.key is not an unencrypted private key/);
    expect(await call(authority.issue('proxy'))).toBe(1);
    expect(shop.weir.output.match(/keeping the current ones/g)).toHaveLength(1);
    put('localhost', 'repaired');
    expect(await shop.weir.line(/certificates of the gRPC listener are valid again/)).toContain('level=error');
    await shop.weir.until('the new certificate', async () => (await certificateNames())?.includes('repaired'));
  });
});

describe('the gRPC listener with GRPC_UDS', () => {
  const UNITS = join(__dirname, '../../deploy/systemd');

  /** The service, which inherits the `UMask=` of a unit or a drop-in from this process. */
  async function start(unit: string, env: Readonly<Record<string, string>>): Promise<Shop> {
    const [, mask = ''] = /^UMask=([0-7]{4})$/m.exec(readFileSync(join(UNITS, unit), 'utf8')) ?? [];
    const before = process.umask(Number.parseInt(mask, 8));
    try {
      return await Shop.start({ env });
    } finally {
      process.umask(before);
    }
  }

  it.each([
    ['its owner', 'weir.service', '1', 0o700],
    ['its group', 'weir.service.d/grpc-socket.conf', '2', 0o770],
  ])('lets %s connect with the umask of %s and WORKERS=%s', async (_who, unit, WORKERS, mode) => {
    await using folder = await SocketFolder.make();
    await using shop = await start(unit, { WORKERS, GRPC_UDS: folder.path });
    expect(statSync(folder.path).mode & 0o777).toBe(mode);
    using client = new RateLimitClient(`unix:${folder.path}`);
    expect((await client.shouldRateLimit('shop', ['user=x'])).overallCode).toBe(1);
    expect(shop.weir.output).toContain(`grpc=${folder.path}`);
  });
});

describe('the gRPC listener', () => {
  const WATCH = '/grpc.health.v1.Health/Watch';
  let shop: Shop;
  beforeAll(async () => {
    // A call stays in flight, because its pipeline window does not close.
    const env = { KVSTORE_PIPELINE_WINDOW: '10m', GRPC_MAX_CONNECTION_AGE: '400ms' };
    shop = await Shop.start({ env: { ...env, GRPC_MAX_CONNECTION_AGE_GRACE: '300ms' } });
  });
  afterAll(() => shop[Symbol.asyncDispose]());

  it('lists its services by reflection, for tools without .proto files', async () => {
    const client = new Client(shop.weir.grpcAddress, credentials.createInsecure());
    const call = client.makeBidiStreamRequest(
      '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      (request: ServerReflectionRequest) => Buffer.from(ServerReflectionRequest.encode(request).finish()),
      (message: Buffer) => ServerReflectionResponse.decode(message),
    );
    call.write({ host: '', messageRequest: { $case: 'listServices', value: '*' } });
    const [{ messageResponse }] = (await once(call, 'data')) as [ServerReflectionResponse];
    expect(messageResponse?.value).toMatchObject({
      service: [
        { name: 'envoy.service.ratelimit.v3.RateLimitService' },
        { name: 'grpc.health.v1.Health' },
        { name: 'grpc.reflection.v1.ServerReflection' },
        { name: 'grpc.reflection.v1alpha.ServerReflection' },
      ],
    });
    call.cancel();
    call.on('error', () => undefined);
    client.close();
  });

  it('ends connections at GRPC_MAX_CONNECTION_AGE, and a health Watch on them with UNAVAILABLE', async () => {
    using idle = new Http2Connection(shop.weir.grpcAddress);
    using watching = new Http2Connection(shop.weir.grpcAddress);
    const { status } = watching.call(WATCH, HealthCheckRequest.encode({ service: '' }).finish());
    expect(await status).toBe(14);
    await Promise.all([idle.closed, watching.closed]);
    expect(idle.events).toEqual(['GOAWAY 0 max_age', 'closed']);
    expect(watching.events).toEqual(['GOAWAY 0 max_age', 'Watch ended with 14', 'closed']);
  });

  it('cuts a connection with a call in flight GRPC_MAX_CONNECTION_AGE_GRACE after its GOAWAY', async () => {
    using connection = new Http2Connection(shop.weir.grpcAddress);
    const { status } = connection.call(SHOULD_RATE_LIMIT, requestMessage('shop', ['user=a']));
    expect(await status).toBeNaN();
    await connection.closed;
    expect(connection.events[0]).toBe('GOAWAY 0 max_age');
  });
});

describe.each([
  {
    bound: 'GRPC_MAX_CONNECTIONS',
    options: { env: { GRPC_MAX_CONNECTIONS: '4' } },
    kind: 'connections',
    reason: /GRPC_MAX_CONNECTIONS are open" open=4 limit=4$/,
    openAtMost: 4,
  },
  {
    bound: 'the limit of open files',
    options: { openFiles: 64 },
    kind: 'file_descriptors',
    reason: /the limit of open files \(ulimit -n\) is almost reached" open=\d+ limit=64$/,
    openAtMost: 48,
  },
])('a service whose connections reach $bound', ({ options, kind, reason, openAtMost }) => {
  it('refuses further ones, keeps serving, and logs the beginning and the end', async () => {
    await using shop = await Shop.start(options);
    const { weir } = shop;
    function lines(text: string): readonly string[] {
      return weir.output.split('\n').filter((line) => line.includes(text));
    }
    await shop.hit();
    const address = { address: '127.0.0.1', family: 'IPv4', port: weir.ports.grpc };
    const others = Array.from({ length: 60 }, () => connectPlain(address).send(hello()));
    await Promise.all(
      others.map((other) => other.until('SETTINGS or the end', () => other.isEnded || other.frames.length > 0)),
    );
    const refused = others.filter(({ frames }) => frames.length === 0).length;
    expect(refused).toBeGreaterThanOrEqual(60 - openAtMost);
    expect(refused).toBeLessThan(60);
    expect((await weir.statistics()).get(`ratelimit_server.http2.${kind}`)).toBe(refused);
    expect(await shop.hit()).toBe(999_998);
    await weir.line(/gRPC connections are refused/);
    expect(lines('gRPC connections are refused')).toEqual([expect.stringMatching(reason)]);
    expect(lines('gRPC connections are refused')[0]).toContain('level=warning');

    for (const other of others) other.close();
    const end = await weir.line(/gRPC connections are accepted again/);
    expect(end).toContain(`level=warning`);
    expect(end).toContain(`refused=${refused} `);
    using late = new RateLimitClient(weir.grpcAddress);
    expect((await late.shouldRateLimit('shop', ['user=b'])).overallCode).toBe(1);
    expect(lines('gRPC connections are')).toHaveLength(2);
  });
});
