import { once } from 'node:events';
import type tls from 'node:tls';
import type { Peer, Rejection } from '../../../src/grpc/http2/limits';
import type { ServerTls } from '../../../src/grpc/http2/tls';
import { newAuthority } from '../../support/data/certificates';
import { until } from '../../support/waiting/until';
import { endedOf, get, hello, ping } from './frames';
import { type RawClient, connectPlain, connectTls } from './raw-client';
import { type TestServer, startServer } from './test-application';

const [authority, other] = [newAuthority(), newAuthority()];
let server: TestServer;
let rejections: Rejection[] = [];
let last: { peer: Peer; reason: string } | undefined;
const opened: RawClient[] = [];

afterEach(async () => {
  for (const client of opened.splice(0)) client.close();
  await server.close();
});
afterAll(() => {
  authority.dispose();
  other.dispose();
});

async function start(settings: Partial<ServerTls> = {}, limits = {}): Promise<void> {
  rejections = [];
  server = await startServer({
    tls: { ...authority.issue('localhost'), ...settings },
    limits,
    onRejected: (kind, { remoteAddress, remotePort }, reason) => {
      rejections.push(kind);
      last = { peer: { remoteAddress, remotePort }, reason };
    },
  });
}

function connect(options: tls.ConnectionOptions = {}): RawClient {
  const client = connectTls(server.address, { ca: authority.ca, ...options });
  opened.push(client);
  return client;
}
/** A client that does not speak TLS. */
function connectWithoutTls(): RawClient {
  const client = connectPlain(server.address);
  opened.push(client);
  return client;
}

async function expectAnswer(client: RawClient): Promise<RawClient> {
  client.send(hello(), get(1));
  return client.until('an answer', () => endedOf(client.frames).includes(1));
}

async function expectRejection(client: RawClient, as: Rejection): Promise<void> {
  rejections = [];
  client.send(hello(), get(1));
  await client.until('the close', () => client.isClosed);
  expect(endedOf(client.frames)).toEqual([]);
  // The server may notice it a moment after the client.
  await until('the client is rejected', () => rejections.length > 0);
  expect(rejections).toEqual([as]);
}

describe('a TLS handshake', () => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)('with %s and the protocol h2 is accepted', async (version) => {
    await start();
    const { socket } = await expectAnswer(connect({ minVersion: version, maxVersion: version }));
    expect((socket as tls.TLSSocket).getProtocol()).toBe(version);
  });

  it('is rejected with any other protocol, version or cipher, or if it is none', async () => {
    await start();
    const prohibited = 'ECDHE-ECDSA-AES128-SHA';
    await expectRejection(connect({ ALPNProtocols: [] }), 'tls_client');
    await expectRejection(connect({ ALPNProtocols: ['http/1.1'] }), 'tls_handshake');
    await expectRejection(connect({ minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' }), 'tls_handshake');
    await expectRejection(connect({ maxVersion: 'TLSv1.2', ciphers: prohibited }), 'tls_handshake');
    await expectRejection(connectWithoutTls(), 'tls_handshake');
  });

  it('that the client aborts is reported with the address of the client', async () => {
    await start();
    const { socket } = connectWithoutTls();
    await once(socket, 'connect');
    const { localPort } = socket;
    await until('there is a connection', () => server.connectionCount === 1);
    socket.write(Buffer.from([22, 3, 1]), () => socket.resetAndDestroy());
    await until('the client is rejected', () => rejections.length > 0);
    expect(last).toEqual({
      peer: { remoteAddress: '127.0.0.1', remotePort: localPort },
      reason: 'the client has disconnected; it may not trust the certificate',
    });
  });

  it('is aborted at the time limit, even if bytes keep arriving', async () => {
    await start({}, { prefaceMs: 400 });
    const client = connectWithoutTls();
    const drip = setInterval(() => client.send(Buffer.from([22])), 50);
    await client.until('the close', () => client.isClosed);
    clearInterval(drip);

    expect(rejections).toEqual(['tls_handshake']);
  });

  it('that is not finished counts towards the bound of connections, as a connection does', async () => {
    await start({}, { maxConnections: 2 });
    const unfinished = connectWithoutTls();
    const finished = await expectAnswer(connect());
    const refused = connect();
    await refused.until('the end', () => refused.isClosed);
    expect(rejections).toEqual(['connections']);
    unfinished.close();
    await until('the handshake has failed', () => server.connectionCount === 1 && rejections.length === 2);
    await expectAnswer(connect());
    finished.close();
    await until('it is closed', () => server.connectionCount === 1);
    await expectAnswer(connect());
  });
});

it('a server that requires client certificates accepts only clients with a certificate of the authority that carries the required name', async () => {
  await start({ clientCa: authority.ca, clientName: 'proxy.example' });
  await expectAnswer(connect(authority.issue('other.example', 'proxy.example')));
  await expectRejection(connect(authority.issue('issued-0', 'evil-proxy.example')), 'tls_client');
  await expectRejection(connect(), 'tls_handshake');
  await expectRejection(connect(other.issue('proxy.example')), 'tls_handshake');
});

describe('replacing the certificate', () => {
  function serial({ socket }: RawClient): string {
    return (socket as tls.TLSSocket).getPeerCertificate().serialNumber;
  }

  it('affects new handshakes and not open connections', async () => {
    await start();
    const before = await expectAnswer(connect());
    server.replaceTls(authority.issue('localhost'));
    expect(serial(await expectAnswer(connect()))).not.toBe(serial(before));
    before.send(ping('alive...'));
    await before.until('the acknowledgement of the PING', () => before.isAcknowledged('alive...'));
  });

  it('throws and keeps the previous one if the new one cannot be used, or clients would need one now', async () => {
    await start();
    const pair = authority.issue('localhost');
    const mixed = { cert: pair.cert, key: authority.issue('localhost').key };
    expect(() => server.replaceTls(mixed)).toThrow('key values mismatch');
    expect(() => server.replaceTls({ cert: 'no PEM', key: 'no PEM' })).toThrow('PEM');
    expect(() => server.replaceTls({ ...pair, clientCa: authority.ca })).toThrow('cannot change while');
    await expectAnswer(connect());
  });

  it('keeps the TLS versions, and can change the authority and the required name', async () => {
    await start({ clientCa: authority.ca, clientName: 'a.example' });
    server.replaceTls({ ...authority.issue('localhost'), clientCa: other.ca, clientName: 'b.example' });
    const certificate = other.issue('b.example');
    await expectAnswer(connect(certificate));
    await expectRejection(connect({ ...certificate, minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' }), 'tls_handshake');
    await expectRejection(connect({ ...certificate, ALPNProtocols: ['http/1.1'] }), 'tls_handshake');
    await expectRejection(connect(authority.issue('b.example')), 'tls_handshake');
    await expectRejection(connect(other.issue('a.example')), 'tls_client');
  });

  it('keeps session tickets valid unless the authority changes', async () => {
    await start({ clientCa: authority.ca });
    const certificate = authority.issue('anybody');
    const first = connect(certificate).send(hello());
    const [session] = (await once(first.socket, 'session')) as [Buffer];
    async function isReused(clientCa: string): Promise<boolean> {
      server.replaceTls({ ...authority.issue('localhost'), clientCa });
      const { socket } = await expectAnswer(connect({ ...certificate, session }));
      return (socket as tls.TLSSocket).isSessionReused();
    }

    expect(await isReused(authority.ca)).toBe(true);
    expect(await isReused(`${authority.ca}\n${other.ca}`)).toBe(false);
  });
});
