import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { type Certificate, selfSigned } from '../support/data/certificates';
import { WeirProcess } from '../support/processes/weir-process';
import { Files } from '../sources/rule-files/watched-rules';

const DAY = 24 * 60 * 60 * 1000;

let files: Files;
beforeAll(() => {
  files = new Files();
  files.change('put root/config/shop 1');
});
afterAll(() => files[Symbol.dispose]());

/** A certificate that is valid for 90 days, with this many left. */
function withDaysLeft(days: number): { readonly pair: Certificate; readonly until: number } {
  const until = Math.floor(Date.now() / 1000) * 1000 + days * DAY;
  return { pair: selfSigned(new Date(until - 90 * DAY), new Date(until)), until };
}

function write({ cert, key }: Certificate): void {
  files.write('tls.crt', cert);
  files.write('tls.key', key);
}

function start(): Promise<WeirProcess> {
  const tls = {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: files.at('tls.crt'),
    GRPC_SERVER_TLS_KEY: files.at('tls.key'),
  };
  return WeirProcess.start({ env: { RUNTIME_ROOT: files.at('root'), ...tls } });
}

function warningsIn({ output }: WeirProcess): readonly string[] {
  return output.split('\n').filter((line) => line.includes('the certificate of the gRPC listener'));
}

async function expiresAt(weir: WeirProcess): Promise<number | undefined> {
  return (await weir.statistics()).get('certs.expires_at');
}

/** Expects that a TLS handshake with the gRPC listener shows this certificate. */
async function expectServed({ cert }: Certificate, { ports }: WeirProcess): Promise<void> {
  // Without verification: most of these certificates are not valid.
  const socket = connect({ port: ports.grpc, host: '127.0.0.1', ALPNProtocols: ['h2'], rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect');
    expect(socket.getPeerCertificate().fingerprint256).toBe(new X509Certificate(cert).fingerprint256);
  } finally {
    socket.destroy();
  }
}

describe('the certificate of the gRPC listener', () => {
  it('is replaced by valid ones only, and its expiry is a statistic and warned of within 30 days', async () => {
    const [first, second, third] = [withDaysLeft(29.5), withDaysLeft(1.5), withDaysLeft(90)];
    write(first.pair);
    await using weir = await start();
    expect(await expiresAt(weir)).toBe(first.until / 1000);
    expect(warningsIn(weir)).toEqual([
      expect.stringMatching(/level=warning.*the certificate of the gRPC listener expires in 29 days" expires="?20/),
    ]);

    write(withDaysLeft(-1).pair);
    const rejected = await weir.line(/new certificates of the gRPC listener rejected; keeping the current ones/);
    expect(rejected).toMatch(/level=error.*GRPC_SERVER_TLS_CERT=\S+tls\.crt has expired: it was valid until 20/);
    await expectServed(first.pair, weir);
    expect(await expiresAt(weir)).toBe(first.until / 1000);

    write(second.pair);
    await weir.line(/the certificates of the gRPC listener are valid again/);
    await weir.line(/the certificate of the gRPC listener expires in 1 day"/);
    await expectServed(second.pair, weir);
    expect(await expiresAt(weir)).toBe(second.until / 1000);

    write(third.pair);
    await weir.until('the third certificate', async () => (await expiresAt(weir)) === third.until / 1000);
    await weir.until('the line about it', () => warningsIn(weir).length > 3);
    expect(warningsIn(weir).map((line) => /msg="([^"]*)"/.exec(line)?.[1])).toEqual([
      'the certificate of the gRPC listener expires in 29 days',
      'the certificate of the gRPC listener was replaced',
      'the certificate of the gRPC listener expires in 1 day',
      'the certificate of the gRPC listener was replaced',
    ]);
  });

  it.each([
    ['has expired', () => withDaysLeft(-1).pair, /level=warning.*has expired" expires="?20/],
    ['is not valid yet', () => withDaysLeft(91).pair, /level=warning.*is not valid yet" valid_from="?20/],
  ])('that %s at the start is served, with a warning', async (_, pairOf, warning) => {
    const pair = pairOf();
    write(pair);
    await using weir = await start();
    await weir.line(/the certificate of the gRPC listener/);
    expect(warningsIn(weir)).toEqual([expect.stringMatching(warning)]);
    await expectServed(pair, weir);
  });
});
