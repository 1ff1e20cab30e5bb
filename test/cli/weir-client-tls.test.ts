import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, type Server, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SecureVersion, createServer as createTlsServer } from 'node:tls';
import { runClient } from '../../src/cli/client/run-client';
import type { ServerTls } from '../../src/grpc/http2/tls/tls-options';
import { serveGrpc } from '../../src/grpc/server/grpc-server';
import { type Authority, type Certificate, newAuthority, selfSigned } from '../support/data/certificates';

const DAY = 24 * 60 * 60 * 1000;

let authority: Authority;
let other: Authority;
let folder: string;
let server: Certificate;
const closings: (() => unknown)[] = [];

beforeAll(() => {
  [authority, other] = [newAuthority(), newAuthority()];
  folder = mkdtempSync(join(tmpdir(), 'weir-client-tls-'));
  server = authority.issue('localhost');
  for (const [name, issuer] of [
    ['client', authority],
    ['stranger', other],
  ] as const) {
    const { cert, key } = issuer.issue('weir');
    file(`${name}.pem`, cert);
    file(`${name}.key`, key);
  }
  file('ca.pem', authority.ca);
});
afterEach(() => Promise.all(closings.splice(0).map((close) => close())));
afterAll(() => {
  authority.dispose();
  other.dispose();
  rmSync(folder, { recursive: true });
});

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** Starts the gRPC server of weir; it has no methods. */
async function weir(tls?: ServerTls): Promise<string> {
  const started = await serveGrpc({ listen: { host: '127.0.0.1', port: 0 }, tls, unary: new Map() });
  closings.push(() => started.close());
  return `localhost:${(started.address as AddressInfo).port}`;
}

/** Starts another server. */
async function listen(started: Server): Promise<string> {
  await new Promise<void>((resolve) => {
    started.listen(0, '127.0.0.1', resolve);
  });
  closings.push(() => started.close());
  return `localhost:${(started.address() as AddressInfo).port}`;
}

/** A server with TLS up to this version that requires a client certificate. */
function requiring(maxVersion: SecureVersion): Promise<string> {
  return listen(
    createTlsServer({ ...server, ca: authority.ca, requestCert: true, maxVersion, ALPNProtocols: ['h2'] })
      .on('tlsClientError', (_error, socket) => socket.destroy())
      .on('secureConnection', (socket) => socket.on('error', () => undefined)),
  );
}

async function call(address: string, ...flags: string[]): Promise<string> {
  let err = '';
  const stdout = { write: () => undefined };
  const stderr = { write: (text: string) => (err += text) };
  await runClient(['-dial_string', address, '-domain', 'shop', '-descriptors', 'a=b', ...flags], { stdout, stderr });
  return err.replace(`weir-client: cannot connect to ${address}: `, '');
}

const TLS = ['-grpc-use-tls'];
function trusted(): string[] {
  return [...TLS, '-grpc-server-ca-file', join(folder, 'ca.pem')];
}
function presenting(name: string): string[] {
  return [...trusted(), '-grpc-cert-file', join(folder, `${name}.pem`), '-grpc-key-file', join(folder, `${name}.key`)];
}

const CERTIFICATE_MISSING =
  'the server requires a client certificate; give one with -grpc-cert-file and -grpc-key-file\n';

describe('weir-client says', () => {
  it('that the certificate of the server has other names, and which', async () => {
    const { cert, key } = authority.issue('shop.example', '192.0.2.1');
    expect(await call(await weir({ cert, key }), ...trusted())).toBe(
      'the certificate of the server is not for localhost but for shop.example, 192.0.2.1\n',
    );
  });

  it('that the certificate of the server is not for the IP address', async () => {
    const address = (await weir(server)).replace('localhost', '127.0.0.1');
    expect(await call(address, ...trusted())).toBe('the certificate of the server is not for the address 127.0.0.1\n');
  });

  it('that the CA of the server is unknown', async () => {
    expect(await call(await weir(server), ...TLS)).toBe(
      'the certificate of the server is from an unknown CA; give that CA with -grpc-server-ca-file\n',
    );
  });

  it('that the certificate of the server has expired', async () => {
    const pair = selfSigned(new Date(Date.now() - 2 * DAY), new Date(Date.now() - DAY));
    const ca = file('expired.pem', pair.cert);
    expect(await call(await weir(pair), ...TLS, '-grpc-server-ca-file', ca)).toBe(
      'the certificate of the server has expired\n',
    );
  });

  it('that the server requires a client certificate', async () => {
    expect(await call(await weir({ ...server, clientCa: authority.ca }), ...trusted())).toBe(CERTIFICATE_MISSING);
    expect(await call(await requiring('TLSv1.3'), ...trusted())).toBe(CERTIFICATE_MISSING);
  });

  it('that the server may require a client certificate, where TLS 1.2 does not tell', async () => {
    expect(await call(await requiring('TLSv1.2'), ...trusted())).toMatch(/require a client certificate/);
  });

  it('that the server may reject the client certificate', async () => {
    const address = await weir({ ...server, clientCa: authority.ca });
    expect(await call(address, ...presenting('stranger'))).toBe(
      'the server closed the connection; it may reject the client certificate\n',
    );
    expect(await call(address, ...presenting('client'))).toMatch(/responded with UNIMPLEMENTED/);
  });

  it('that the server does not speak TLS', async () => {
    const refusal = 'the server does not speak TLS; try without -grpc-use-tls\n';
    expect(await call(await weir(), ...trusted())).toBe(refusal);
    expect(await call(await listen(createServer((socket) => socket.destroy())), ...trusted())).toBe(refusal);
  });

  it('that the server requires TLS', async () => {
    const advice = 'the server requires TLS; try -grpc-use-tls\n';
    expect(await call(await weir(server))).toBe(advice);
    expect(await call(await weir({ ...server, clientCa: authority.ca }))).toBe(advice);
    expect(await call(await requiring('TLSv1.2'))).toBe(advice);
  });

  it('that the server does not speak gRPC', async () => {
    const http = createServer((socket) =>
      socket
        .on('error', () => {})
        .end('HTTP/1.1 400 Bad Request\r\n\r\n')
        .resume(),
    );
    expect(await call(await listen(http))).toBe('the server does not speak gRPC\n');
  });
});
