import { once } from 'node:events';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { Client, credentials } from '@grpc/grpc-js';
import { HealthCheckRequest } from '../../src/gen/grpc/health/v1/health';
import { ServerReflectionRequest, ServerReflectionResponse } from '../../src/gen/grpc/reflection/v1/reflection';
import { goawaysOf, hello } from '../grpc/http2/frames';
import { type RawClient, connectPlain } from '../grpc/http2/raw-client';
import { RateLimitClient } from '../support/clients/grpc-client';
import { Http2Connection } from '../support/clients/http2-connection';
import { type Authority, type Certificate, newAuthority, selfSigned } from '../support/data/certificates';
import { TemporaryFolder } from '../support/data/temporary-folder';
import type { WeirProcess } from '../support/processes/weir-process';
import { until } from '../support/waiting/until';
import { SocketFolder } from '../support/servers/unix-stream-receiver';
import { Shop } from './shop';

const DAY = 24 * 60 * 60 * 1000;

/** A certificate that is valid for 90 days, with this many left, and when it expires in seconds. */
function withDaysLeft(days: number) {
  const end = Math.floor(Date.now() / 1000) * 1000 + days * DAY;
  return { ...selfSigned(new Date(end - 90 * DAY), new Date(end)), expiry: end / 1000 };
}

describe('the gRPC listener with TLS', () => {
  let authority: Authority;
  let own: TemporaryFolder;
  let shop: Shop;
  beforeAll(async () => {
    authority = newAuthority();
    own = new TemporaryFolder();
    own.write('ca.crt', authority.ca);
    write(withDaysLeft(-1));
    shop = await start();
  });
  afterAll(async () => {
    await shop[Symbol.asyncDispose]();
    own[Symbol.dispose]();
    authority.dispose();
  });

  function start() {
    const server = { GRPC_SERVER_TLS_CERT: own.at('tls.crt'), GRPC_SERVER_TLS_KEY: own.at('tls.key') };
    const clients = { GRPC_CLIENT_TLS_CACERT: own.at('ca.crt'), GRPC_CLIENT_TLS_SAN: 'proxy' };
    const env = { LOG_LEVEL: 'debug', DISABLE_STATS: 'true', GRPC_SERVER_USE_TLS: 'true' };
    return Shop.start({ env: { ...env, ...server, ...clients } });
  }
  /** At once: the service rejects a certificate and a key that do not belong together. */
  function write({ cert, key }: Certificate) {
    own.write('tls.crt', cert);
    own.write('tls.key', key);
  }
  async function call(pair?: Certificate) {
    const [ca, key, cert] = [authority.ca, pair?.key, pair?.cert].map((pem) => pem && Buffer.from(pem));
    using client = new RateLimitClient(
      `localhost:${shop.weir.ports.grpc}`,
      credentials.createSsl(ca || null, key || null, cert || null),
    );
    return (await client.shouldRateLimit('shop', ['user=x'])).overallCode;
  }
  /** Replaces the certificate by one with these names, and waits until new connections get it. */
  async function replace(...names: string[]) {
    write(authority.issue(...names));
    const expected = names.map((name) => `DNS:${name}`).join(', ');
    await shop.weir.until('the new certificate', async () => (await certificateNames()) === expected);
  }
  /** The DNS names in the server's certificate on a new connection. */
  async function certificateNames() {
    const at = { host: '127.0.0.1', port: shop.weir.ports.grpc, ALPNProtocols: ['h2'] };
    const socket = connect({ ...at, rejectUnauthorized: false }).on('error', () => undefined);
    await once(socket, 'secureConnect');
    const names = socket.getPeerCertificate().subjectaltname;
    socket.destroy();
    return names;
  }

  it('serves a certificate that has expired or is not valid yet at the start, with a warning', async () => {
    const warning = 'level=warning.*the certificate of the gRPC listener';
    await shop.weir.line(new RegExp(`${warning} has expired" expires="?20`));
    expect(await certificateNames()).toBeUndefined();
    write(withDaysLeft(91));
    await using other = await start();
    expect(other.weir.output).toMatch(new RegExp(`${warning} is not valid yet" valid_from="?20`));
    expect(shop.weir.output).not.toContain('was replaced');
  });

  it('requires a client certificate of the CA with the configured name, and logs whom it rejects', async () => {
    await replace('localhost');
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
    await replace('localhost', 'renewed');
    own.write('tls.key', 'broken');
    await shop.weir.line(/keeping the current ones" reason=".*tls\.key is not an unencrypted private key/);
    expect(await call(authority.issue('proxy'))).toBe(1);
    expect(shop.weir.output.match(/keeping the current ones" reason=".*tls.key/g)).toHaveLength(1);
    await replace('localhost', 'repaired');
    expect(await shop.weir.line(/certificates of the gRPC listener are valid again/)).toContain('level=info');
  });

  it('has the expiry of its certificate as a statistic, warns within 30 days, and rejects one that has expired', async () => {
    async function expiry() {
      return (await shop.weir.statistics()).get('certs.expires_at');
    }
    for (const [days, shown] of [
      [29.5, '29 days'],
      [1.5, '1 day'],
    ] as const) {
      const pair = withDaysLeft(days);
      write(pair);
      await shop.weir.line(
        new RegExp(`level=warning.*the certificate of the gRPC listener expires in ${shown}" expires=`),
      );
      expect(await expiry()).toBe(pair.expiry);
      write(withDaysLeft(-1));
      const rejected =
        'rejected; keeping the current ones" reason="GRPC_SERVER_TLS_CERT=\\S+tls\\.crt has expired: ' +
        'it was valid until';
      await shop.weir.line(new RegExp(rejected));
      expect(await expiry()).toBe(pair.expiry);
    }
    const last = withDaysLeft(90);
    write(last);
    await shop.weir.until('the last certificate', async () => (await expiry()) === last.expiry);
    expect(shop.weir.output.match(/the certificate of the gRPC listener expires in/g)).toHaveLength(2);
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
    using folder = new SocketFolder();
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
        { name: 'kuadrant.service.ratelimit.v1.RateLimitService' },
        { name: 'weir.v1.Reservations' },
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
});

it.concurrent(
  'a service whose connections reach GRPC_MAX_CONNECTIONS refuses further ones, serves, and logs begin and end',
  async () => {
    await using shop = await Shop.start({ env: { GRPC_MAX_CONNECTIONS: '4' } });
    const { weir } = shop;
    await shop.hit();
    const others = await manyConnections(weir, 60);
    const refused = others.filter(({ frames }) => frames.length === 0).length;
    expect(refused).toBeGreaterThanOrEqual(56);
    expect(refused).toBeLessThan(60);
    expect((await weir.statistics()).get('ratelimit_server.http2.connections')).toBe(refused);
    expect(await shop.hit()).toBe(999_998);
    expect(await weir.line(/gRPC connections are refused/)).toMatch(
      /level=warning .*GRPC_MAX_CONNECTIONS are open" open=4 limit=4$/,
    );

    for (const other of others) other.close();
    const end = await weir.line(/gRPC connections are accepted again/);
    expect(end).toMatch(new RegExp(`level=info .*refused=${refused} `));
    using late = new RateLimitClient(weir.grpcAddress);
    expect((await late.shouldRateLimit('shop', ['user=b'])).overallCode).toBe(1);
    expect(weir.output.match(/gRPC connections are/g)).toHaveLength(2);
  },
);

it.concurrent(
  'a service whose connections reach the limit of open files closes the idlest ones, with GOAWAY, and logs it',
  async () => {
    await using shop = await Shop.start({ openFiles: 128 });
    const { weir } = shop;
    const idle = connectPlain({ address: '127.0.0.1', family: 'IPv4', port: weir.ports.http });
    const others = await manyConnections(weir, 100);
    await idle.until('the end', () => idle.isEnded);
    expect([others[0]!.isEnded, others.at(-1)!.isEnded]).toEqual([true, false]);
    expect(goawaysOf(others[0]!.frames)).toMatchObject([{ code: 0, debug: 'file_descriptors' }]);
    expect(readdirSync(`/proc/${weir.pid}/fd`).length).toBeLessThanOrEqual(128 - 32);
    const statistics = await weir.statistics();
    const closed = statistics.get('ratelimit_server.http2.file_descriptors');
    await until('their ends', () => others.filter(({ isEnded }) => isEnded).length === closed);
    expect(statistics.get('ratelimit_server.http.connections')).toBe(1);
    expect(await shop.hit()).toBe(999_999);
    expect(await weir.line(/gRPC connections are closed/)).toMatch(
      /level=warning .*the limit of open files \(ulimit -n\) is almost reached" open=\d+ limit=128$/,
    );

    for (const other of others) other.close();
    expect(await weir.line(/gRPC connections are no longer closed/)).toMatch(/level=info .*refused=\d+ /);
  },
);

/** Connections of HTTP/2 that were opened one after the other, and are idle. */
async function manyConnections({ ports }: WeirProcess, count: number): Promise<readonly RawClient[]> {
  const clients: RawClient[] = [];
  for (let opened = 0; opened < count; opened += 1) {
    const client = connectPlain({ address: '127.0.0.1', family: 'IPv4', port: ports.grpc }).send(hello());
    await client.until('SETTINGS or the end', () => client.isEnded || client.frames.length > 0);
    clients.push(client);
  }
  return clients;
}
