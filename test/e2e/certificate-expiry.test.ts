import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { type Certificate, selfSigned } from '../support/data/certificates';
import { RuleFolder } from '../support/data/rule-folder';
import { type WeirOptions, WeirProcess } from '../support/processes/weir-process';

const DAY = 24 * 60 * 60 * 1000;

let folder: string;
let rules: RuleFolder;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-expiry-'));
  rules = await RuleFolder.with({ 'shop.yaml': 'domain: shop' });
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await rules[Symbol.asyncDispose]();
});

/** A certificate that is valid for 90 days, with this many left. */
function withDaysLeft(days: number): { readonly pair: Certificate; readonly until: number } {
  const until = Math.floor(Date.now() / 1000) * 1000 + days * DAY;
  return { pair: selfSigned(new Date(until - 90 * DAY), new Date(until)), until };
}

function write({ cert, key }: Certificate): void {
  writeFileSync(join(folder, 'tls.crt'), cert);
  writeFileSync(join(folder, 'tls.key'), key);
}

function start(
  env: Readonly<Record<string, string>> = {},
  options: Pick<WeirOptions, 'awaitServing'> = {},
): Promise<WeirProcess> {
  return WeirProcess.start({
    ...options,
    env: {
      ...rules.env,
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: join(folder, 'tls.crt'),
      GRPC_SERVER_TLS_KEY: join(folder, 'tls.key'),
      ...env,
    },
  });
}

function warningsIn({ output }: WeirProcess): readonly string[] {
  return output.split('\n').filter((line) => line.includes('the certificate of the gRPC listener'));
}

async function expiresAt(weir: WeirProcess): Promise<number | undefined> {
  return (await weir.statistics()).get('certs.expires_at');
}

/** The fingerprint of the certificate that a TLS handshake with the gRPC listener shows. */
async function servedBy({ ports }: WeirProcess): Promise<string> {
  // Without verification: most of these certificates are not valid.
  const socket = connect({ port: ports.grpc, host: '127.0.0.1', ALPNProtocols: ['h2'], rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect');
    return socket.getPeerCertificate().fingerprint256;
  } finally {
    socket.destroy();
  }
}

function fingerprintOf({ cert }: Certificate): string {
  return new X509Certificate(cert).fingerprint256;
}

describe('a new certificate of the gRPC listener', () => {
  const inOneYear = new Date(Date.now() + 365 * DAY);

  it.each<[what: string, spoil: () => void, reason: RegExp]>([
    [
      'has expired',
      () => write(withDaysLeft(-1).pair),
      /GRPC_SERVER_TLS_CERT=\S+tls\.crt has expired: it was valid until 20/,
    ],
    [
      'is not valid yet',
      () => write(selfSigned(new Date(Date.now() + DAY), inOneYear)),
      /GRPC_SERVER_TLS_CERT=\S+tls\.crt is not valid before 20/,
    ],
    [
      'has another key',
      () => writeFileSync(join(folder, 'tls.key'), withDaysLeft(50).pair.key),
      /GRPC_SERVER_TLS_KEY=\S+tls\.key is not the key of GRPC_SERVER_TLS_CERT=/,
    ],
    [
      'has an empty bundle of client authorities',
      () => writeFileSync(join(folder, 'ca.crt'), ''),
      /GRPC_CLIENT_TLS_CACERT=\S+ca\.crt is empty/,
    ],
  ])('that %s is rejected, and the previous one is served until there is a valid one', async (_, spoil, reason) => {
    const { pair } = withDaysLeft(60);
    write(pair);
    writeFileSync(join(folder, 'ca.crt'), pair.cert);
    await using weir = await start({ GRPC_CLIENT_TLS_CACERT: join(folder, 'ca.crt') });
    spoil();
    const line = await weir.line(/new certificates of the gRPC listener rejected; keeping the current ones/);
    expect(line).toMatch(/level=error/);
    expect(line).toMatch(reason);
    expect(await servedBy(weir)).toBe(fingerprintOf(pair));
    const next = withDaysLeft(60).pair;
    writeFileSync(join(folder, 'ca.crt'), pair.cert);
    write(next);
    await weir.line(/the certificates of the gRPC listener are valid again/);
    await weir.until('the new certificate', async () => (await servedBy(weir)) === fingerprintOf(next));
  });

  it('that is not valid yet is served as soon as it is, even when the previous one has expired', async () => {
    const expired = withDaysLeft(-1).pair;
    write(expired);
    await using weir = await start();
    const next = selfSigned(new Date(Date.now() + 20_000), inOneYear);
    write(next);
    await weir.line(/tls\.crt is not valid before 20/);
    expect(await servedBy(weir)).toBe(fingerprintOf(expired));
    await weir.until('the new certificate', async () => {
      // Each write is a reason to read the files again; otherwise they are read every 10 seconds.
      write(next);
      return (await servedBy(weir)) === fingerprintOf(next);
    });
    await weir.line(/the certificates of the gRPC listener are valid again/);
  });

  it('that is invalid is rejected also before the service opens, which then serves the previous one', async () => {
    const { pair } = withDaysLeft(60);
    write(pair);
    await using later = await RuleFolder.with({ 'shop.yaml': 'no rules' });
    await using weir = await start(later.env, { awaitServing: false });
    await weir.until('the certificate', async () => ((await expiresAt(weir).catch(() => 0)) ?? 0) > 0);
    writeFileSync(join(folder, 'tls.key'), 'rubbish');
    await weir.line(/new certificates of the gRPC listener rejected; keeping the current ones/);
    expect(weir.output).not.toMatch(/msg="?serving/);
    await later.write('shop.yaml', 'domain: shop');
    await weir.line(/msg="?serving/);
    expect(await servedBy(weir)).toBe(fingerprintOf(pair));
  });

  it('that is not valid yet is served at start, with a warning', async () => {
    const pair = selfSigned(new Date(Date.now() + DAY), inOneYear);
    write(pair);
    await using weir = await start();
    expect(warningsIn(weir)).toEqual([
      expect.stringMatching(/level=warning.*the certificate of the gRPC listener is not valid yet" valid_from="?20/),
    ]);
    expect(await servedBy(weir)).toBe(fingerprintOf(pair));
  });
});

describe('the expiry of the certificate of the gRPC listener', () => {
  it('is a statistic, and is warned of within 30 days, again after a reload', async () => {
    const first = withDaysLeft(29.5);
    write(first.pair);
    await using weir = await start();
    expect(await expiresAt(weir)).toBe(first.until / 1000);
    expect(warningsIn(weir)).toEqual([
      expect.stringMatching(/level=warning.*the certificate of the gRPC listener expires in 29 days" expires="?20/),
    ]);
    const second = withDaysLeft(1.5);
    write(second.pair);
    await weir.line(/the certificate of the gRPC listener expires in 1 day"/);
    expect(await expiresAt(weir)).toBe(second.until / 1000);
    const third = withDaysLeft(90);
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

  it('is not warned of before', async () => {
    const { pair, until } = withDaysLeft(31);
    write(pair);
    await using weir = await start();
    expect(await expiresAt(weir)).toBe(until / 1000);
    expect(warningsIn(weir)).toEqual([]);
  });

  it('in the past is warned of at start, and the certificate is served', async () => {
    const { pair } = withDaysLeft(-1);
    write(pair);
    await using weir = await start();
    await weir.line(/the certificate of the gRPC listener/);
    expect(warningsIn(weir)).toEqual([expect.stringContaining('has expired')]);
    expect(await servedBy(weir)).toBe(fingerprintOf(pair));
  });

  it('is 0 without TLS', async () => {
    await using weir = await WeirProcess.start({ env: rules.env });
    expect(await expiresAt(weir)).toBe(0);
  });
});
