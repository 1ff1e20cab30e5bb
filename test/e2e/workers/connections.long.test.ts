import { once } from 'node:events';
import { appendFileSync, existsSync, renameSync } from 'node:fs';
import { type ClientHttp2Session, connect } from 'node:http2';
import { connect as connectTo } from 'node:net';
import { type TLSSocket, connect as connectTls } from 'node:tls';
import { credentials } from '@grpc/grpc-js';
import { hello } from '../../grpc/http2/frames';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { type Authority, type Certificate, newAuthority } from '../../support/data/certificates';
import { RuleFolder } from '../../support/data/rule-folder';
import { TemporaryFolder } from '../../support/data/temporary-folder';
import { WeirProcess } from '../../support/processes/weir-process';
import { connectionsTo, connectionsToPath, workersOf } from '../../support/processes/worker-processes';
import * as instance from './instance';

let rules: RuleFolder;
let own: TemporaryFolder;
let authority: Authority;
beforeAll(async () => {
  rules = await RuleFolder.with({ 'shop.yaml': instance.ruleFile(1) });
  own = new TemporaryFolder();
  authority = newAuthority();
});
afterAll(async () => {
  await rules[Symbol.asyncDispose]();
  own[Symbol.dispose]();
  authority.dispose();
});

function start(env: Readonly<Record<string, string>> = {}): Promise<WeirProcess> {
  return WeirProcess.start({ env: { ...rules.env, WORKERS: '2', ...env } });
}

const sessions: ClientHttp2Session[] = [];
function closeSessions(): void {
  for (const session of sessions.splice(0)) session.destroy();
}
afterEach(closeSessions);

/**
 * Opens HTTP/2 connections, all at once, and waits until each of them is served. They are closed at the end of the
 * test.
 */
async function open(count: number, ...[address, options]: Parameters<typeof connect>) {
  const opened = Array.from({ length: count }, () => connect(address, options).on('error', () => undefined));
  sessions.push(...opened);
  await Promise.all(opened.map((session) => once(session, 'remoteSettings')));
  return opened;
}

describe('the connections of an instance with two workers', () => {
  it('go to another worker if the one that they are on their way to dies', async () => {
    await using weir = await start();
    const [stopped, other] = workersOf(weir);
    process.kill(stopped!.pid, 'SIGSTOP');
    const opened = open(8, `http://${weir.grpcAddress}`);
    await weir.until('the half of the other worker', () => connectionsTo(weir.ports.grpc, other!.pid) >= 4);
    process.kill(stopped!.pid, 'SIGKILL');
    await expect(opened).resolves.toHaveLength(8);
  });

  it('go to the others while a worker does not answer', async () => {
    await using weir = await start();
    const [stopped, other] = workersOf(weir);
    process.kill(stopped!.pid, 'SIGSTOP');
    await weir.line(/level=warning msg="a worker does not answer; others get the new connections/);
    expect(await weir.debug('/workers')).toMatch(/^worker 1: .*state=not answering/);
    using clients = await instance.Clients.open(weir, 4);
    expect(new Set(await clients.owners())).toEqual(new Set([other!.pid]));
    process.kill(stopped!.pid, 'SIGCONT');
    await weir.line(/level=info msg="a worker answers again/);
    for (let count = 0; count < 4; count += 1) await clients.add();
    await instance.expectSpread(weir, [4, 4]);
  });

  it('are dropped and counted when they are reset before a worker has them, and do not delay others', async () => {
    await using weir = await start();
    const pid = weir.pid!;
    process.kill(pid, 'SIGSTOP');
    for (let count = 0; count < 400; count += 1) {
      const socket = connectTo(weir.ports.grpc, '127.0.0.1');
      await once(socket, 'connect');
      socket.resetAndDestroy();
    }
    const opened = open(2, `http://${weir.grpcAddress}`);
    process.kill(pid, 'SIGCONT');
    await opened;
    expect((await weir.statistics()).get('ratelimit.workers.reset_connections')).toBe(400);
    await weir.line(/connections are no longer reset before a worker has them" listener=gRPC reset=400/);
  });

  it('wait when many arrive at once, and stay open', async () => {
    await using weir = await start();
    const pid = weir.pid!;
    process.kill(pid, 'SIGSTOP');
    const sockets = Array.from({ length: 2_000 }, () => connectTo(weir.ports.grpc, '127.0.0.1'));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    process.kill(pid, 'SIGCONT');
    const outcomes = sockets.map((socket) => {
      socket.write(hello());
      return Promise.race([once(socket, 'data').then(() => 'served'), once(socket, 'close').then(() => 'closed')]);
    });
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set(['served']));
    for (const socket of sockets) socket.destroy();
  });

  it('are bounded for all workers together', async () => {
    await using weir = await start({ GRPC_MAX_CONNECTIONS: '3' });
    using clients = await instance.Clients.open(weir, 3);
    await instance.expectSpread(weir, [2, 1]);
    const refused = connectTo(weir.ports.grpc, '127.0.0.1');
    await once(refused.resume(), 'close');
    await instance.expectSpread(weir, [2, 1]);
    await weir.line(/gRPC connections are refused: GRPC_MAX_CONNECTIONS are open/);
    clients[Symbol.dispose]();
    await instance.untilPrimaryCounts(weir, [0, 0]);
    using _ = await instance.Clients.open(weir, 2);
    await instance.expectSpread(weir, [1, 1]);
  });

  it('are spread from a Unix socket too, which is removed at the end', async () => {
    const path = own.at('grpc.sock');
    await using weir = await start({ GRPC_UDS: path });
    await open(8, 'http://localhost', { createConnection: () => connectTo(path) });
    await instance.expectSpread(weir, [4, 4], (pid) => connectionsToPath(path, pid));
    using client = new RateLimitClient(`unix:${path}`);
    await expect(client.shouldRateLimit('shop', ['user=x'])).resolves.toMatchObject({ overallCode: instance.OK });
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    expect(existsSync(path)).toBe(false);
  });
});

describe('the certificates of an instance with two workers', () => {
  /** Replaces both files at once: the service rejects a certificate and a key that do not belong together. */
  function writeCertificate(): Readonly<Record<string, string>> {
    const { cert, key } = authority.issue('localhost');
    const files = { 'key.pem': key, 'cert.pem': cert };
    for (const [name, text] of Object.entries(files)) own.write(`${name}.new`, text);
    for (const name of Object.keys(files)) renameSync(own.at(`${name}.new`), own.at(name));
    const paths = { GRPC_SERVER_TLS_CERT: own.at('cert.pem'), GRPC_SERVER_TLS_KEY: own.at('key.pem') };
    return { GRPC_SERVER_USE_TLS: 'true', ...paths };
  }

  function servedCertificates(weir: WeirProcess): Promise<readonly string[]> {
    const options = { port: weir.ports.grpc, host: '127.0.0.1', servername: 'localhost', ALPNProtocols: ['h2'] };
    return Promise.all(
      [1, 2].map(async () => {
        const socket = connectTls({ ...options, ca: authority.ca });
        await once(socket, 'secureConnect');
        const { fingerprint256 } = socket.getPeerCertificate();
        socket.destroy();
        return fingerprint256;
      }),
    );
  }

  function tlsOf(session: ClientHttp2Session | undefined): TLSSocket {
    return session?.socket as TLSSocket;
  }

  it('are in all workers, which resume the sessions of each other, and are renewed in all, with one line', async () => {
    await using weir = await start(writeCertificate());
    const address = `https://localhost:${weir.ports.grpc}`;
    const options = { ca: authority.ca, maxVersion: 'TLSv1.2' } as const;
    const [first] = await open(1, address, options);
    const resuming = await open(3, address, { ...options, session: tlsOf(first).getSession()! });
    await instance.expectSpread(weir, [2, 2]);
    expect(resuming.map((session) => tlsOf(session).isSessionReused())).toEqual([true, true, true]);
    closeSessions();

    const [before] = await servedCertificates(weir);
    writeCertificate();
    await weir.line(/new certificates of the gRPC listener loaded/);
    await weir.until('both workers to serve the new ones', async () => {
      const [one, other] = await servedCertificates(weir);
      return one !== before && one === other;
    });
    expect(instance.linesWith(weir, 'new certificates of the gRPC listener loaded')).toBe(1);
    const statistics = await weir.statistics();
    expect(statistics.get('certs.load_failures')).toBe(0);
    expect(statistics.get('certs.expires_at')).toBeGreaterThan(Date.now() / 1000);
    // A replacement has them, too.
    for (const { pid } of workersOf(weir)) process.kill(pid, 'SIGKILL');
    const after = await weir.until('the replacements', () => servedCertificates(weir).catch(() => undefined));
    expect(after).not.toContain(before);
  });

  it('are for clients with the right name only, and are renewed up to the size that is accepted', async () => {
    const bundle = own.write('ca.pem', authority.ca);
    const client = { GRPC_CLIENT_TLS_CACERT: bundle, GRPC_CLIENT_TLS_SAN: 'proxy' };
    await using weir = await start({ ...writeCertificate(), ...client });
    async function callWith({ cert, key }: Certificate) {
      const channel = credentials.createSsl(Buffer.from(authority.ca), Buffer.from(key), Buffer.from(cert));
      using caller = new RateLimitClient(`localhost:${weir.ports.grpc}`, channel);
      return await caller.shouldRateLimit('shop', ['user=x']);
    }
    const [proxy, other] = [authority.issue('proxy'), authority.issue('other')];
    expect(await callWith(proxy)).toMatchObject({ overallCode: instance.OK });
    await expect(callWith(other)).rejects.toMatchObject({ code: 14 });
    // Each of these characters takes six bytes in JSON, in which workers may receive it.
    appendFileSync(bundle, '\u0001'.repeat(500_000));
    await weir.line(/new certificates of the gRPC listener loaded/);
    appendFileSync(bundle, '#\n'.repeat(250_000));
    const line = await weir.line(/new certificates of the gRPC listener rejected/);
    expect(line).toMatch(/GRPC_CLIENT_TLS_CACERT=\S+ca\.pem: it has more than 524288 bytes/);
    for (let count = 0; count < 4; count += 1) {
      expect(await callWith(proxy)).toMatchObject({ overallCode: instance.OK });
    }
  });
});
