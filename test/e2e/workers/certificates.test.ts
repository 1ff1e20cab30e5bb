import { once } from 'node:events';
import { appendFileSync, renameSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TLSSocket, connect } from 'node:tls';
import { credentials } from '@grpc/grpc-js';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { type Authority, type Certificate, newAuthority } from '../../support/data/certificates';
import { RuleFolder } from '../../support/data/rule-folder';
import { WeirProcess } from '../../support/processes/weir-process';
import { workersOf } from '../../support/processes/worker-processes';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};

let rules: RuleFolder;
let own: string;
let authority: Authority;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
  own = await mkdtemp(join(tmpdir(), 'weir-workers-'));
  authority = newAuthority();
});
afterAll(async () => {
  await rules[Symbol.asyncDispose]();
  await rm(own, { recursive: true });
  authority.dispose();
});

async function writeCertificate(): Promise<Readonly<Record<string, string>>> {
  const { cert, key } = authority.issue('localhost');
  // At once: the service rejects a certificate and a key that do not belong together.
  for (const [name, text] of [
    ['key.pem', key],
    ['cert.pem', cert],
  ] as const) {
    writeFileSync(join(own, `${name}.new`), text);
  }
  for (const name of ['key.pem', 'cert.pem']) renameSync(join(own, `${name}.new`), join(own, name));
  return {
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: join(own, 'cert.pem'),
    GRPC_SERVER_TLS_KEY: join(own, 'key.pem'),
  };
}

async function servedCertificate(weir: WeirProcess): Promise<string> {
  const { grpc: port } = weir.ports;
  const socket: TLSSocket = connect({
    port,
    host: '127.0.0.1',
    servername: 'localhost',
    ca: authority.ca,
    ALPNProtocols: ['h2'],
  });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

async function callWith(weir: WeirProcess, { cert, key }: Certificate) {
  const channel = credentials.createSsl(Buffer.from(authority.ca), Buffer.from(key), Buffer.from(cert));
  using client = new RateLimitClient(`localhost:${weir.ports.grpc}`, channel);
  return await client.shouldRateLimit('shop', ['user=x']);
}

describe('an instance with two workers', () => {
  it('renews the certificates in all workers, and logs and counts it once', async () => {
    const tls = await writeCertificate();
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...tls, WORKERS: '2' } });
    const before = await servedCertificate(weir);
    expect(await servedCertificate(weir)).toBe(before);
    await writeCertificate();
    await weir.line(/new certificates of the gRPC listener loaded/);
    await weir.until('both workers to serve the new ones', async () => {
      const [one, other] = [await servedCertificate(weir), await servedCertificate(weir)];
      return one !== before && one === other;
    });
    expect(weir.output.split('new certificates of the gRPC listener loaded')).toHaveLength(2);
    const statistics = await weir.statistics();
    expect(statistics.get('certs.load_failures')).toBe(0);
    expect(statistics.get('certs.expires_at')).toBeGreaterThan(Date.now() / 1000);
    // A replacement has them, too.
    for (const { pid } of workersOf(weir)) process.kill(pid, 'SIGKILL');
    await weir.until('the replacements', async () => (await servedCertificate(weir).catch(() => before)) !== before);
    expect(await servedCertificate(weir)).not.toBe(before);
  });

  it('rejects a large bundle of client authorities like a single process, and keeps the current one', async () => {
    const tls = await writeCertificate();
    const bundle = join(own, 'ca.pem');
    writeFileSync(bundle, authority.ca);
    const env = { ...rules.env, ...tls, GRPC_CLIENT_TLS_CACERT: bundle, WORKERS: '2' };
    await using weir = await WeirProcess.start({ env });
    const before = await servedCertificate(weir);
    appendFileSync(bundle, '#\n'.repeat(500_000));
    const line = await weir.line(/new certificates of the gRPC listener rejected/);
    expect(line).toMatch(/GRPC_CLIENT_TLS_CACERT=\S+ca\.pem has 1000\d{3} bytes, more than the limit of 524288/);
    expect(await servedCertificate(weir)).toBe(before);
  });

  it('requires the name that the certificates of clients must contain', async () => {
    const tls = await writeCertificate();
    const bundle = join(own, 'ca.pem');
    writeFileSync(bundle, authority.ca);
    const client = { GRPC_CLIENT_TLS_CACERT: bundle, GRPC_CLIENT_TLS_SAN: 'proxy' };
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...tls, ...client, WORKERS: '2' } });
    expect(await callWith(weir, authority.issue('proxy'))).toMatchObject({ overallCode: 1 });
    await expect(callWith(weir, authority.issue('other'))).rejects.toMatchObject({ code: 14 });
  });
});
