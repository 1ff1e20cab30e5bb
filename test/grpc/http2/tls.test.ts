import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import tls from 'node:tls';
import type { Rejection } from '../../../src/grpc/http2/limits/rejections';
import type { ServerTls } from '../../../src/grpc/http2/tls/tls-options';
import { type Authority, newAuthority } from '../../support/data/certificates';
import { endedOf, get, hello, ping } from './frames';
import { RawClient, connectTls, eventually } from './raw-client';
import { type TestServer, startServer } from './start-server';
import { TestApplication } from './test-application';

jest.setTimeout(30_000);

let authority: Authority;
let other: Authority;
const rejections: Rejection[] = [];
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
    onRejected: (kind) => rejections.push(kind),
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

async function expectRefusal(client: RawClient, as: Rejection): Promise<void> {
  client.send(hello(), get(1));
  await client.until('the close', () => client.isClosed);
  expect(endedOf(client.frames)).toEqual([]);
  // The server may learn of it a moment after the client.
  await eventually('a refusal', () => rejections.length > 0);
  expect(rejections).toEqual([as]);
}

describe('a TLS handshake', () => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)('of %s with the protocol h2 is served', async (version) => {
    await start();
    const client = connect({ minVersion: version, maxVersion: version });
    await expectAnswer(client);

    expect((client.socket as tls.TLSSocket).getProtocol()).toBe(version);
    client.close();
  });

  it.each([
    ['without any protocol', {}, 'tls_client'],
    ['with another protocol', { ALPNProtocols: ['http/1.1'] }, 'tls_handshake'],
    ['of TLS 1.1', { ALPNProtocols: ['h2'], minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' }, 'tls_handshake'],
    [
      'with a cipher that RFC 9113 forbids',
      { ALPNProtocols: ['h2'], maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-SHA' },
      'tls_handshake',
    ],
  ] as const)('%s is refused', async (_title, options, as) => {
    await start();
    const { port } = server!.address as AddressInfo;
    await expectRefusal(
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

  it('that is none is refused', async () => {
    await start();
    await expectRefusal(
      new RawClient(net.connect((server!.address as AddressInfo).port, '127.0.0.1')),
      'tls_handshake',
    );
  });

  it('that never comes ends, and so does one that drips', async () => {
    await start({}, { prefaceMs: 400 });
    const client = new RawClient(net.connect((server!.address as AddressInfo).port, '127.0.0.1'));
    const drip = setInterval(() => client.send(Buffer.from([22])), 50);
    await client.until('the close', () => client.isClosed);
    clearInterval(drip);

    expect(rejections).toEqual(['tls_handshake']);
  });

  it('without a preface after it ends', async () => {
    await start({}, { prefaceMs: 400, lingerMs: 50 });
    const client = connect();
    await client.until('the end', () => client.isEnded);

    expect(rejections).toEqual(['preface_timeout']);
    client.close();
  });
});

describe('with an authority for callers', () => {
  it('a caller with its certificate is served', async () => {
    await start({ clientCa: authority.ca });
    await expectAnswer(connect(authority.issue('anybody')));
  });

  it.each([
    ['without a certificate', () => ({})],
    ['with a certificate of another authority', () => other.issue('anybody')],
  ])('a caller %s is refused', async (_title, options) => {
    await start({ clientCa: authority.ca });
    await expectRefusal(connect(options()), 'tls_handshake');
  });

  it('and a name, a caller whose certificate carries it is served', async () => {
    await start({ clientCa: authority.ca, clientName: 'proxy.example' });
    await expectAnswer(connect(authority.issue('other.example', 'proxy.example')));
  });

  it('and a name, a caller whose certificate carries it not is refused', async () => {
    await start({ clientCa: authority.ca, clientName: 'proxy.example' });
    await expectRefusal(connect(authority.issue('issued-0', 'evil-proxy.example')), 'tls_client');
  });
});

describe('a swap of the certificate', () => {
  function serial(client: RawClient): string {
    return (client.socket as tls.TLSSocket).getPeerCertificate().serialNumber;
  }

  it('serves new handshakes with the new one, and leaves open connections alone', async () => {
    await start();
    const before = connect();
    await expectAnswer(before);
    server!.replaceTls(authority.issue('localhost'));
    const after = connect();
    await expectAnswer(after);

    expect(serial(after)).not.toBe(serial(before));
    before.send(ping('alive...'));
    await before.until('a sign of life', () => before.heard('alive...'));
    before.close();
    after.close();
  });

  it('that cannot be used throws, and keeps the old one', async () => {
    await start();
    const mixed = { cert: authority.issue('localhost').cert, key: authority.issue('localhost').key };

    expect(() => server!.replaceTls(mixed)).toThrow('key values mismatch');
    expect(() => server!.replaceTls({ cert: 'no PEM', key: 'no PEM' })).toThrow('PEM');
    await expectAnswer(connect());
  });

  it('keeps all else as it was: versions, protocol, authority', async () => {
    await start({ clientCa: authority.ca });
    server!.replaceTls({ ...authority.issue('localhost'), clientCa: authority.ca });
    await expectAnswer(connect(authority.issue('anybody')));
    await expectRefusal(
      connect({ ...authority.issue('anybody'), maxVersion: 'TLSv1.1', minVersion: 'TLSv1.1' }),
      'tls_handshake',
    );
    rejections.length = 0;
    await expectRefusal(connect(other.issue('anybody')), 'tls_handshake');
  });

  it('may change the authority and the name', async () => {
    await start({ clientCa: authority.ca, clientName: 'a.example' });
    server!.replaceTls({ ...authority.issue('localhost'), clientCa: other.ca, clientName: 'b.example' });
    await expectAnswer(connect(other.issue('b.example')));
    await expectRefusal(connect(authority.issue('b.example')), 'tls_handshake');
  });

  it('cannot change whether callers need a certificate', async () => {
    await start();

    expect(() => server!.replaceTls({ ...authority.issue('localhost'), clientCa: authority.ca })).toThrow(
      'cannot change while',
    );
  });

  it('keeps the tickets of those who come again, until the authority changes', async () => {
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
