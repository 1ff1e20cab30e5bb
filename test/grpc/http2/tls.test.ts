import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import tls from 'node:tls';
import type { Peer, Rejection } from '../../../src/grpc/http2/limits/rejections';
import type { ServerTls } from '../../../src/grpc/http2/tls/tls-options';
import { type Authority, newAuthority } from '../../support/data/certificates';
import { endedOf, get, hello, ping } from './frames';
import { RawClient, connectTls, eventually } from './raw-client';
import { type TestServer, startServer } from './start-server';
import { TestApplication } from './test-application';

let authority: Authority;
let other: Authority;
const rejections: Rejection[] = [];
let lastReason = '';
let lastPeer: Peer = {};
let server: TestServer | undefined;

beforeAll(() => {
  authority = newAuthority();
  other = newAuthority();
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  rejections.length = 0;
});
afterAll(() => {
  authority.dispose();
  other.dispose();
});

async function start(settings: Partial<ServerTls> = {}, limits = {}): Promise<TestServer> {
  server = await startServer({
    at: { host: '127.0.0.1', port: 0 },
    tls: { ...authority.issue('localhost'), ...settings },
    limits,
    application: new TestApplication(),
    onRejected: (kind, { remoteAddress, remotePort }, reason) => {
      rejections.push(kind);
      lastReason = reason;
      lastPeer = { remoteAddress, remotePort };
    },
  });
  return server;
}

function connect(options: tls.ConnectionOptions = {}): RawClient {
  return connectTls(server!.address, { ca: authority.ca, ...options });
}

async function expectAnswer(client: RawClient): Promise<void> {
  client.send(hello(), get(1));
  await client.until('an answer', () => endedOf(client.frames).includes(1));
}

async function expectRejection(client: RawClient, as: Rejection): Promise<void> {
  client.send(hello(), get(1));
  await client.until('the close', () => client.isClosed);
  expect(endedOf(client.frames)).toEqual([]);
  // The server may notice it a moment after the client.
  await eventually('a rejection', () => rejections.length > 0);
  expect(rejections).toEqual([as]);
}

describe('a TLS handshake', () => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)('with %s and the protocol h2 is accepted', async (version) => {
    await start();
    const client = connect({ minVersion: version, maxVersion: version });
    await expectAnswer(client);

    expect((client.socket as tls.TLSSocket).getProtocol()).toBe(version);
    client.close();
  });

  it.each([
    ['without any protocol', {}, 'tls_client'],
    ['with another protocol', { ALPNProtocols: ['http/1.1'] }, 'tls_handshake'],
    ['with TLS 1.1', { ALPNProtocols: ['h2'], minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' }, 'tls_handshake'],
    [
      'with a cipher that RFC 9113 prohibits',
      { ALPNProtocols: ['h2'], maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-SHA' },
      'tls_handshake',
    ],
  ] as const)('%s is rejected', async (_title, options, as) => {
    await start();
    const { port } = server!.address as AddressInfo;
    await expectRejection(
      new RawClient(
        tls.connect({
          port,
          host: '127.0.0.1',
          servername: 'localhost',
          ca: authority.ca,
          ...options,
        } as tls.ConnectionOptions),
      ),
      as,
    );
  });

  it('that the client aborts is reported with the address of the client', async () => {
    await start();
    const socket = net.connect((server!.address as AddressInfo).port, '127.0.0.1');
    await once(socket, 'connect');
    const { localPort } = socket;
    await eventually('the connection', () => server!.connectionCount === 1);
    socket.write(Buffer.from([22, 3, 1]), () => socket.resetAndDestroy());
    await eventually('a rejection', () => rejections.length > 0);
    expect(lastReason).toBe('the client has disconnected; it may not trust the certificate');
    expect(lastPeer).toEqual({ remoteAddress: '127.0.0.1', remotePort: localPort });
  });

  it('is rejected when the input is not TLS', async () => {
    await start();
    await expectRejection(
      new RawClient(net.connect((server!.address as AddressInfo).port, '127.0.0.1')),
      'tls_handshake',
    );
  });

  it('is aborted at the time limit, even if bytes keep arriving', async () => {
    await start({}, { prefaceMs: 400 });
    const client = new RawClient(net.connect((server!.address as AddressInfo).port, '127.0.0.1'));
    const drip = setInterval(() => client.send(Buffer.from([22])), 50);
    await client.until('the close', () => client.isClosed);
    clearInterval(drip);

    expect(rejections).toEqual(['tls_handshake']);
  });

  it('that is not finished counts towards the bound of connections, and is counted once if it is over it', async () => {
    await start({}, { maxConnections: 2 });
    const { port } = server!.address as AddressInfo;
    const unfinished = [1, 2].map(() => new RawClient(net.connect(port, '127.0.0.1')));
    await eventually('two connections', () => server!.connectionCount === 2);
    const refused = connect();
    await refused.until('the end', () => refused.isClosed);

    expect(rejections).toEqual(['connections']);
    for (const client of unfinished) client.close();
    await eventually('no connection', () => server!.connectionCount === 0);
    await eventually('two failed handshakes', () => rejections.length === 3);
    const client = connect();
    await expectAnswer(client);
    client.close();
  });

  it('must be followed by a preface within the time limit', async () => {
    await start({}, { prefaceMs: 6_000, lingerMs: 50 });
    const client = connect();
    await client.until('the end', () => client.isEnded);

    expect(rejections).toEqual(['preface_timeout']);
    client.close();
  });
});

describe('a server that requires client certificates', () => {
  it('accepts a client with a certificate of the authority', async () => {
    await start({ clientCa: authority.ca });
    await expectAnswer(connect(authority.issue('anybody')));
  });

  it.each([
    ['without a certificate', () => ({})],
    ['with a certificate of another authority', () => other.issue('anybody')],
  ])('rejects a client %s', async (_title, options) => {
    await start({ clientCa: authority.ca });
    await expectRejection(connect(options()), 'tls_handshake');
  });

  it('accepts a client whose certificate carries the required name', async () => {
    await start({ clientCa: authority.ca, clientName: 'proxy.example' });
    await expectAnswer(connect(authority.issue('other.example', 'proxy.example')));
  });

  it('rejects a client whose certificate does not carry the required name', async () => {
    await start({ clientCa: authority.ca, clientName: 'proxy.example' });
    await expectRejection(connect(authority.issue('issued-0', 'evil-proxy.example')), 'tls_client');
  });
});

describe('replacing the certificate', () => {
  function serial(client: RawClient): string {
    return (client.socket as tls.TLSSocket).getPeerCertificate().serialNumber;
  }

  it('affects new handshakes and not open connections', async () => {
    await start();
    const before = connect();
    await expectAnswer(before);
    server!.replaceTls(authority.issue('localhost'));
    const after = connect();
    await expectAnswer(after);

    expect(serial(after)).not.toBe(serial(before));
    before.send(ping('alive...'));
    await before.until('the acknowledgement of the PING', () => before.isAcknowledged('alive...'));
    before.close();
    after.close();
  });

  it('throws and keeps the previous one if the new one cannot be used', async () => {
    await start();
    const mixed = { cert: authority.issue('localhost').cert, key: authority.issue('localhost').key };

    expect(() => server!.replaceTls(mixed)).toThrow('key values mismatch');
    expect(() => server!.replaceTls({ cert: 'no PEM', key: 'no PEM' })).toThrow('PEM');
    await expectAnswer(connect());
  });

  it('keeps the TLS versions, the protocol and the authority', async () => {
    await start({ clientCa: authority.ca });
    server!.replaceTls({ ...authority.issue('localhost'), clientCa: authority.ca });
    await expectAnswer(connect(authority.issue('anybody')));
    await expectRejection(
      connect({ ...authority.issue('anybody'), maxVersion: 'TLSv1.1', minVersion: 'TLSv1.1' }),
      'tls_handshake',
    );
    rejections.length = 0;
    await expectRejection(connect(other.issue('anybody')), 'tls_handshake');
  });

  it('can change the authority and the required name', async () => {
    await start({ clientCa: authority.ca, clientName: 'a.example' });
    server!.replaceTls({ ...authority.issue('localhost'), clientCa: other.ca, clientName: 'b.example' });
    await expectAnswer(connect(other.issue('b.example')));
    await expectRejection(connect(authority.issue('b.example')), 'tls_handshake');
  });

  it('cannot change whether clients need a certificate', async () => {
    await start();

    expect(() => server!.replaceTls({ ...authority.issue('localhost'), clientCa: authority.ca })).toThrow(
      'cannot change while',
    );
  });

  it('keeps session tickets valid unless the authority changes', async () => {
    await start({ clientCa: authority.ca });
    const certificate = authority.issue('anybody');
    const first = connect(certificate);
    const [session] = (await once(
      first.socket.on('secureConnect', () => first.send(hello())),
      'session',
    )) as [Buffer];
    async function isReused(): Promise<boolean> {
      const client = connect({ ...certificate, session });
      await expectAnswer(client);
      const isSessionReused = (client.socket as tls.TLSSocket).isSessionReused();
      client.close();
      return isSessionReused;
    }

    server!.replaceTls({ ...authority.issue('localhost'), clientCa: authority.ca });
    expect(await isReused()).toBe(true);
    server!.replaceTls({ ...authority.issue('localhost'), clientCa: `${authority.ca}\n${other.ca}` });
    expect(await isReused()).toBe(false);
    first.close();
  });
});
