import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../support/processes/free-ports';
import { RateLimitClient } from '../support/clients/grpc-client';
import { HostilePeer } from '../support/servers/hostile-peer';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = 'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1000000 } }]\n';
const FAST = { STATS_FLUSH_INTERVAL: '10ms', OTEL_BSP_SCHEDULE_DELAY: '10', OTEL_EXPORTER_OTLP_TIMEOUT: '300' };
const STORE = { BACKEND_TYPE: 'kvstore', KVSTORE_TIMEOUT: '300ms', LOG_LEVEL: 'debug' };
const XDS = {
  CONFIG_TYPE: 'GRPC_XDS_SOTW',
  CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '10ms',
  XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '10ms',
  XDS_CLIENT_BACKOFF_MAX_INTERVAL: '20ms',
  FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
};

/** Requests that are not HTTP, are incomplete, or whose response is not read. */
const INVALID_REQUESTS = [
  '',
  '\0\r\n\r\n',
  'GET /metrics HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n',
  'POST /json HTTP/1.1\r\nContent-',
];

async function sendAndReset(port: number, text: string): Promise<void> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(text, () => socket.resetAndDestroy());
  await once(socket, 'close');
}

let folder: RuleFolder;
let sockets: string;
beforeAll(async () => {
  folder = await RuleFolder.with({ 'd.yaml': RULES });
  sockets = await mkdtemp(join(tmpdir(), 'weir-hostile-'));
});
afterAll(async () => {
  await folder[Symbol.asyncDispose]();
  await rm(sockets, { recursive: true });
});

/** Expects the service to decide until the peers have had these numbers of connections, and then to exit with 0 on SIGTERM. */
async function expectSurvival(weir: WeirProcess, peers: readonly [HostilePeer, connections: number][]): Promise<void> {
  using client = new RateLimitClient(weir.grpcAddress);
  await weir.until('every peer to have had its connections', async () => {
    await client.shouldRateLimit('d', ['k']);
    return peers.every(([peer, connections]) => peer.connections >= connections);
  });
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
}

describe('the service continues to decide and shuts down cleanly', () => {
  it('with a hostile statistics daemon, collector and callers', async () => {
    await using daemon = await HostilePeer.start();
    await using collector = await HostilePeer.start(3);
    const [metrics] = await freePorts(1);
    await using weir = await WeirProcess.start({
      env: {
        ...folder.env,
        ...FAST,
        USE_PUSHSTATS: 'true',
        PUSHSTATS_HOST: '127.0.0.1',
        PUSHSTATS_PORT: String(daemon.port),
        USE_PULLMETRICS: 'true',
        PULLMETRICS_ADDR: `127.0.0.1:${metrics}`,
        TRACING_ENABLED: 'true',
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://${collector.address}`,
      },
    });
    for (const port of [weir.ports.http, weir.ports.debug, weir.ports.grpc, metrics])
      for (const text of INVALID_REQUESTS) await sendAndReset(port, text);
    await expectSurvival(weir, [
      [daemon, 2 * HostilePeer.behaviourCount],
      [collector, HostilePeer.behaviourCount],
    ]);
  });

  it('with a hostile daemon on a Unix socket and a hostile collector over gRPC', async () => {
    const path = join(sockets, 'daemon');
    await using daemon = await HostilePeer.start(0, path);
    await using collector = await HostilePeer.start();
    await using weir = await WeirProcess.start({
      env: {
        ...folder.env,
        ...FAST,
        USE_TAGGEDSTATS: 'true',
        PUSHSTATS_HOST: `unixstream://${path}`,
        TRACING_ENABLED: 'true',
        TRACING_EXPORTER_PROTOCOL: 'grpc',
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://${collector.address}`,
      },
    });
    await expectSurvival(weir, [
      [daemon, 2 * HostilePeer.behaviourCount],
      [collector, 2],
    ]);
  });
});

describe('the service waits and shuts down cleanly', () => {
  it.each(['single', 'sentinel', 'cluster'])('with a hostile %s store', async (type) => {
    await using store = await HostilePeer.start();
    const list = type === 'sentinel' ? `master,${store.address}` : store.address;
    await using weir = await WeirProcess.start({
      env: {
        ...folder.env,
        ...STORE,
        KVSTORE_TYPE: type,
        KVSTORE_URL: list,
        KVSTORE_STARTUP_INITIAL_INTERVAL: '10ms',
        KVSTORE_STARTUP_MAX_INTERVAL: '20ms',
      },
      awaitServing: false,
    });
    await weir.until('the store to have had its connections', () => store.connections >= HostilePeer.behaviourCount);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
  });

  it('with a hostile management server', async () => {
    await using server = await HostilePeer.start();
    await using weir = await WeirProcess.start({
      env: { ...XDS, CONFIG_GRPC_XDS_SERVER_URL: server.address, BACKEND_TYPE: 'memory' },
    });
    await weir.until('the server to have had its connections', () => server.connections >= HostilePeer.behaviourCount);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
  });
});
