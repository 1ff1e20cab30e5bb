import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, type IncomingMessage, get } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { connect as connectTo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { credentials } from '@grpc/grpc-js';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { newAuthority } from '../../support/data/certificates';
import { RuleFolder } from '../../support/data/rule-folder';
import { WeirProcess } from '../../support/processes/weir-process';
import { connectionsTo, connectionsToPath, workersOf } from '../../support/processes/worker-processes';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};
const TWO = { WORKERS: '2' };

let rules: RuleFolder;
let own: string;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
  own = await mkdtemp(join(tmpdir(), 'weir-workers-'));
});
afterAll(async () => {
  await rules[Symbol.asyncDispose]();
  await rm(own, { recursive: true });
});

/** HTTP/2 connections that are closed at the end of a test. */
class Connections implements Disposable {
  readonly all: ClientHttp2Session[] = [];

  /** Opens connections, all at once, and waits until each of them is served. */
  async open(count: number, ...[address, options]: Parameters<typeof connect>): Promise<readonly ClientHttp2Session[]> {
    const opened = Array.from({ length: count }, () => connect(address, options));
    this.all.push(...opened);
    await Promise.all(
      opened.map((session) =>
        once(
          session.on('error', () => undefined),
          'remoteSettings',
        ),
      ),
    );
    return opened;
  }

  [Symbol.dispose](): void {
    for (const session of this.all) session.destroy();
  }
}

/** Waits until the workers have these numbers of connections, the largest first. */
function expectSpread(
  weir: WeirProcess,
  expected: readonly number[],
  count: (pid: number) => number,
): Promise<unknown> {
  let seen: readonly number[] = [];
  return weir
    .until('the connections to be spread', () => {
      seen = workersOf(weir)
        .map(({ pid }) => count(pid))
        .sort((one, other) => other - one);
      return seen.join() === expected.join();
    })
    .catch((error: unknown) => {
      throw new Error(`expected ${expected.join('/')}, but the workers have ${seen.join('/')}`, { cause: error });
    });
}

/** A certificate for `localhost`, in the settings of the service and for its clients. */
async function tlsFor(
  folder: string,
): Promise<{ readonly env: Readonly<Record<string, string>>; readonly ca: string }> {
  const authority = newAuthority();
  const { cert, key } = authority.issue('localhost');
  authority.dispose();
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  await writeFile(certFile, cert);
  await writeFile(keyFile, key);
  const env = { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: certFile, GRPC_SERVER_TLS_KEY: keyFile };
  return { env, ca: authority.ca };
}

describe('an instance with two workers', () => {
  it('gives each of them half of the gRPC connections, also in a burst and after some have closed', async () => {
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO } });
    using connections = new Connections();
    const { grpc } = weir.ports;
    function ofGrpc(pid: number): number {
      return connectionsTo(grpc, pid);
    }
    for (let count = 0; count < 8; count += 1) await connections.open(1, `http://${weir.grpcAddress}`);
    await expectSpread(weir, [4, 4], ofGrpc);
    // The odd ones are all of one worker.
    for (const [index, session] of connections.all.entries()) if (index % 2 === 1) session.destroy();
    await untilPrimaryKnows(weir, [4, 0]);
    await connections.open(4, `http://${weir.grpcAddress}`);
    await expectSpread(weir, [4, 4], ofGrpc);
    await connections.open(32, `http://${weir.grpcAddress}`);
    await expectSpread(weir, [20, 20], ofGrpc);
  });

  it('gives the connections on their way to a worker that dies to another one', async () => {
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO } });
    using connections = new Connections();
    const [stopped] = workersOf(weir);
    process.kill(stopped!.pid, 'SIGSTOP');
    const opened = connections.open(8, `http://${weir.grpcAddress}`);
    // The half that the other worker has got.
    await weir.until('the other connections to be taken', () => {
      const [, other] = workersOf(weir);
      return other !== undefined && connectionsTo(weir.ports.grpc, other.pid) >= 4;
    });
    process.kill(stopped!.pid, 'SIGKILL');
    await expect(opened).resolves.toHaveLength(8);
  });

  it('gives new connections to the others while a worker does not answer', async () => {
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO } });
    using connections = new Connections();
    const [stopped, other] = workersOf(weir);
    process.kill(stopped!.pid, 'SIGSTOP');
    await weir.line(/a worker does not answer; others get the new connections/);
    expect(await weir.debug('/workers')).toMatch(/^worker 1: .*state=not answering/);
    await connections.open(4, `http://${weir.grpcAddress}`);
    expect(connectionsTo(weir.ports.grpc, other!.pid)).toBe(4);
    process.kill(stopped!.pid, 'SIGCONT');
    await weir.line(/a worker answers again/);
    await connections.open(4, `http://${weir.grpcAddress}`);
    await expectSpread(weir, [4, 4], (pid) => connectionsTo(weir.ports.grpc, pid));
  });

  it('spreads HTTP connections independently of those of gRPC', async () => {
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO } });
    using connections = new Connections();
    await connections.open(3, `http://${weir.grpcAddress}`);
    const agent = new Agent({ keepAlive: true });
    const answers = Array.from({ length: 8 }, () =>
      once(get({ agent, port: weir.ports.http, host: '127.0.0.1', path: '/healthcheck' }), 'response'),
    );
    for (const [answer] of await Promise.all(answers)) (answer as IncomingMessage).resume();
    await expectSpread(weir, [4, 4], (pid) => connectionsTo(weir.ports.http, pid));
    await expectSpread(weir, [2, 1], (pid) => connectionsTo(weir.ports.grpc, pid));
    agent.destroy();
  });

  it('serves calls over TLS, the handshakes being spread too', async () => {
    const { env, ca } = await tlsFor(own);
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO, ...env } });
    using connections = new Connections();
    const { grpc } = weir.ports;
    await connections.open(8, `https://localhost:${grpc}`, { ca });
    await expectSpread(weir, [4, 4], (pid) => connectionsTo(grpc, pid));
    using client = new RateLimitClient(`localhost:${grpc}`, credentials.createSsl(Buffer.from(ca)));
    await expect(client.shouldRateLimit('shop', ['user=x'])).resolves.toMatchObject({ overallCode: 1 });
  });

  it('resumes a TLS session that another worker began', async () => {
    const { env, ca } = await tlsFor(own);
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO, ...env } });
    using connections = new Connections();
    const address = `https://localhost:${weir.ports.grpc}`;
    const [first] = await connections.open(1, address, { ca, maxVersion: 'TLSv1.2' });
    const session = tlsOf(first).getSession();
    const others = await connections.open(2, address, { ca, maxVersion: 'TLSv1.2', session });
    await expectSpread(weir, [2, 1], (pid) => connectionsTo(weir.ports.grpc, pid));
    expect(others.map((other) => tlsOf(other).isSessionReused())).toEqual([true, true]);
  });

  it('spreads the connections of a Unix socket, and removes the socket when it ends', async () => {
    const path = join(own, 'grpc.sock');
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO, GRPC_UDS: path } });
    using connections = new Connections();
    await connections.open(8, 'http://localhost', { createConnection: () => connectTo(path) });
    await expectSpread(weir, [4, 4], (pid) => connectionsToPath(path, pid));
    using client = new RateLimitClient(`unix:${path}`);
    await expect(client.shouldRateLimit('shop', ['user=x'])).resolves.toMatchObject({ overallCode: 1 });
    weir.signal('SIGTERM');
    await weir.line(/drained; the process exits/);
    expect(await weir.exited).toBe(0);
    expect(existsSync(path)).toBe(false);
  });

  it('bounds the gRPC connections of all workers together', async () => {
    await using weir = await WeirProcess.start({ env: { ...rules.env, ...TWO, GRPC_MAX_CONNECTIONS: '3' } });
    using connections = new Connections();
    await connections.open(3, `http://${weir.grpcAddress}`);
    const refused = connectTo(weir.ports.grpc, '127.0.0.1');
    await once(refused.resume(), 'close');
    await expectSpread(weir, [2, 1], (pid) => connectionsTo(weir.ports.grpc, pid));
    await weir.line(/gRPC connections are refused: GRPC_MAX_CONNECTIONS are open/);
    for (const session of connections.all) session.destroy();
    await untilPrimaryKnows(weir, [0, 0]);
    await connections.open(2, `http://${weir.grpcAddress}`);
    await expectSpread(weir, [1, 1], (pid) => connectionsTo(weir.ports.grpc, pid));
  });
});

/** The connections of each worker by which the primary decides, in any order. */
async function untilPrimaryKnows(weir: WeirProcess, expected: readonly number[]): Promise<void> {
  await weir.until(`the primary to count ${expected.join(' and ')} connections`, async () => {
    const counts = [...(await weir.debug('/workers')).matchAll(/connections=(\d+)/g)].map(([, count]) => Number(count));
    return counts.toSorted((one, other) => other - one).join() === expected.join();
  });
}

function tlsOf(session: ClientHttp2Session | undefined): TLSSocket {
  return session?.socket as TLSSocket;
}
