import { once } from 'node:events';
import { type Socket, connect, createServer } from 'node:net';
import { freePorts } from '../support/processes/free-ports';
import { NamedPipe } from '../support/processes/named-pipe';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { LocalServer } from '../support/servers/local-server';
import { SilentPeer } from '../support/servers/silent-peer';
import { SocketFolder } from '../support/servers/unix-stream-receiver';
import { Shop } from './shop';

const FAST = { STATS_FLUSH_INTERVAL: '10ms', OTEL_BSP_SCHEDULE_DELAY: '10', OTEL_EXPORTER_OTLP_TIMEOUT: '300' };
const TRACES = { TRACING_ENABLED: 'true', TRACING_SAMPLING_RATE: '1' };
const STORE = {
  BACKEND_TYPE: 'kvstore',
  KVSTORE_TIMEOUT: '300ms',
  LOG_LEVEL: 'debug',
  KVSTORE_STARTUP_INITIAL_INTERVAL: '10ms',
  KVSTORE_STARTUP_MAX_INTERVAL: '20ms',
};
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

/** Bytes of no protocol, of the wrong one, or invalid bytes of the right one. */
const INVALID_BYTES = [
  Buffer.from([0, 1, 2, 3, 255, 254, 253, 252, 128, 10, 13, 0]),
  '*-7\r\n$99999999999\r\n+OK\r\n:1\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nand no more',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
  // HTTP/2: a SETTINGS frame, and then an invalid HEADERS frame on a stream that was not opened.
  Buffer.from('000000040000000000000004010400000063ffffffff', 'hex'),
  // HTTP/2: a frame that exceeds the maximum size.
  Buffer.from('ffffff000000000001', 'hex'),
];

/** A Unix socket has no reset; closing it with unread data has that effect. */
function reset(socket: Socket): void {
  void (socket.remoteAddress === undefined ? socket.destroy() : socket.resetAndDestroy());
}

type Behaviour = (socket: Socket) => void;

function later(act: () => void, turns = 1): void {
  void setTimeout(() => (turns === 1 ? act() : later(act, turns - 1)), 30).unref();
}

function onData(act: Behaviour): Behaviour {
  return (socket) => void socket.once('data', () => act(socket)).resume();
}

/** Used for the connections in turn. */
const BEHAVIOURS: readonly Behaviour[] = [
  reset,
  (socket) => socket.end(),
  (socket) => later(() => reset(socket)),
  onData(reset),
  (socket) => {
    socket.resume();
    later(() => reset(socket), 2);
  },
  onData((socket) => socket.end()),
  ...INVALID_BYTES.map((bytes): Behaviour => (socket) => {
    socket.write(bytes);
    later(() => socket.destroy());
  }),
  ...INVALID_BYTES.map((bytes): Behaviour => (socket) => {
    onData(() => socket.write(bytes))(socket);
    later(() => reset(socket), 2);
  }),
];

/** A server that violates every protocol, in another way on each connection. */
class HostilePeer extends LocalServer {
  /** @param first the index of the first behaviour, so that several peers differ */
  private constructor(first: number) {
    super(
      createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
        socket.on('error', () => undefined);
        BEHAVIOURS[(first + this.accepted) % BEHAVIOURS.length]?.(socket);
      }),
    );
  }

  /** @param path of a Unix socket; a free port of 127.0.0.1 if undefined */
  static start(first = 0, path?: string): Promise<HostilePeer> {
    return new HostilePeer(first).listen(path);
  }
}

async function sendAndReset(port: number, text: string): Promise<void> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(text, () => socket.resetAndDestroy());
  await once(socket, 'close');
}

describe('the service decides and shuts down cleanly', () => {
  /**
   * Expects the service to decide until the daemon and the collector have had their connections, and then to exit with
   * 0.
   */
  async function expectSurvival(shop: Shop, daemon: HostilePeer, [collector, least]: [HostilePeer, number]) {
    await shop.weir.until('every peer to have had its connections', async () => {
      await shop.hit();
      return daemon.accepted >= 2 * BEHAVIOURS.length && collector.accepted >= least;
    });
    await shop.drain();
  }

  it('with a hostile statistics daemon, collector and callers', async () => {
    await using daemon = await HostilePeer.start();
    await using collector = await HostilePeer.start(3);
    const [metrics] = await freePorts(1);
    const push = { USE_PUSHSTATS: 'true', PUSHSTATS_HOST: '127.0.0.1', PUSHSTATS_PORT: String(daemon.port) };
    const pull = { USE_PULLMETRICS: 'true', PULLMETRICS_ADDR: `127.0.0.1:${metrics}` };
    const traces = { TRACING_ENABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: `http://${collector.address}` };
    await using shop = await Shop.start({ env: { ...FAST, ...push, ...pull, ...traces } });
    const { http, debug, grpc } = shop.weir.ports;
    for (const port of [http, debug, grpc, metrics]) {
      for (const text of INVALID_REQUESTS) await sendAndReset(port, text);
    }
    await expectSurvival(shop, daemon, [collector, BEHAVIOURS.length]);
  });

  it('with a hostile daemon on a Unix socket and a hostile collector over gRPC', async () => {
    using folder = new SocketFolder();
    await using daemon = await HostilePeer.start(0, folder.path);
    await using collector = await HostilePeer.start();
    const push = { USE_TAGGEDSTATS: 'true', PUSHSTATS_HOST: `unixstream://${folder.path}` };
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${collector.address}` };
    const traces = { TRACING_ENABLED: 'true', TRACING_EXPORTER_PROTOCOL: 'grpc', ...endpoint };
    await using shop = await Shop.start({ env: { ...FAST, ...push, ...traces } });
    await expectSurvival(shop, daemon, [collector, 2]);
  });
});

describe('the service waits and shuts down cleanly', () => {
  it.each([
    ['single store', (at: string) => ({ ...STORE, KVSTORE_TYPE: 'single', KVSTORE_URL: at })],
    ['sentinel', (at: string) => ({ ...STORE, KVSTORE_TYPE: 'sentinel', KVSTORE_URL: `master,${at}` })],
    ['cluster', (at: string) => ({ ...STORE, KVSTORE_TYPE: 'cluster', KVSTORE_URL: at })],
    ['management server', (at: string) => ({ ...XDS, CONFIG_GRPC_XDS_SERVER_URL: at })],
  ])('with a hostile %s', async (_kind, env) => {
    await using peer = await HostilePeer.start();
    await using shop = await Shop.start({ env: env(peer.address), awaitServing: false });
    await shop.weir.until('all connections', () => peer.accepted >= BEHAVIOURS.length);
    await shop.drain();
    expect(shop.weir.output).not.toContain('internal error');
  });
});

it('the service drains and exits while all of its outputs and its store hang', async () => {
  using stdout = new NamedPipe();
  using stderr = new NamedPipe();
  await using daemon = await SilentPeer.start({ reads: false });
  await using collector = await SilentPeer.start();
  await using redis = await RedisProcess.start();
  const [host = '', port = ''] = daemon.address.split(':');
  const push = { USE_PUSHSTATS: 'true', PUSHSTATS_HOST: host, PUSHSTATS_PORT: port, STATS_FLUSH_INTERVAL: '50ms' };
  const traces = { ...TRACES, OTEL_EXPORTER_OTLP_ENDPOINT: `http://${collector.address}` };
  const store = { BACKEND_TYPE: 'kvstore', KVSTORE_URL: redis.address, KVSTORE_TIMEOUT: '4s' };
  const outputs = { stdout: stdout.writer, stderr: stderr.writer };
  await using shop = await Shop.start({ env: { ...push, ...traces, ...store, LOG_LEVEL: 'debug' }, outputs });
  await shop.dropLines('ratelimit.log.dropped');
  redis.signal('SIGSTOP');
  await expect(shop.hit()).rejects.toMatchObject({ code: 14 });
  const inFlight = shop.hit().catch((error: unknown) => error);
  await shop.drain();
  expect(await inFlight).toMatchObject({ code: 14 });
});
