import { join } from 'node:path';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { Daemon } from '../support/processes/daemon';
import { freePorts } from '../support/processes/free-ports';
import { isListening } from '../support/processes/is-listening';
import { UnixDatagramReceiver } from '../support/servers/unix-datagram-receiver';
import { SocketFolder } from '../support/servers/unix-stream-receiver';
import { SHOP, Shop } from './shop';

type Environment = Readonly<Record<string, string>>;

const MAIN = join(__dirname, '../../dist/main.js');

/** So that a signal blocks the event loop for good. */
const BLOCK_ON_SIGNAL = `--require=${require.resolve('../support/processes/block-on-signal.cjs')}`;
const WITHOUT_PACKAGE = {
  NODE_OPTIONS: `--require=${require.resolve('../integration/statistics/without-native-package.cjs')}`,
};
const WATCHDOG = { WATCHDOG_USEC: '200000' };

/** A service that a service manager has started, and what the manager has received. */
async function start(env: Environment, awaitServing = true) {
  const folder = new SocketFolder();
  const receiver = await UnixDatagramReceiver.start(folder.path);
  const shop = await Shop.start({ env: { NOTIFY_SOCKET: folder.path, ...env }, awaitServing });
  function signsOfLife() {
    return receiver.lines.filter((line) => line === 'WATCHDOG=1').length;
  }
  return {
    shop,
    receiver,
    signsOfLife,
    messages: () => receiver.datagrams.map(String).filter((text) => text !== 'WATCHDOG=1' && text !== 'BARRIER=1'),
    /** Waits until as many further signs of life have arrived. */
    async live(count: number): Promise<void> {
      const before = signsOfLife();
      await shop.weir.until('signs of life', () => signsOfLife() >= before + count);
    },
    async [Symbol.asyncDispose](): Promise<void> {
      for (const each of [shop, receiver]) await each[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

describe('a service with NOTIFY_SOCKET', () => {
  it.each([
    ['one process', { SHUTDOWN_DELAY: '6s' }, 15_500_000],
    ['two workers', { WORKERS: '2' }, 14_500_000],
    ['one process without the native package, by systemd-notify', WITHOUT_PACKAGE, 14_500_000],
  ])('reports once that it is ready, and that it stops, with %s', async (_, env: Environment, microseconds) => {
    await using managed = await start(env);
    const { shop, receiver } = managed;
    await shop.weir.until('the service to be ready', () =>
      ['STATUS=serving', 'READY=1'].every((message) => managed.messages().includes(message)),
    );
    await shop.drain();
    await receiver.until('the last message', () => receiver.lines.includes('STOPPING=1'));
    const messages = managed.messages();
    expect(messages[0]).toMatch(/^STATUS=starting: (?:waiting for|opening)/);
    expect(messages.filter((message) => message === 'READY=1')).toHaveLength(1);
    expect(messages.at(-1)).toBe(`STOPPING=1\nSTATUS=stopping after SIGTERM\nEXTEND_TIMEOUT_USEC=${microseconds}`);
  });

  it('logs once that the manager cannot be reached, and serves', async () => {
    await using shop = await Shop.start({ env: { NOTIFY_SOCKET: '/none/such.socket' } });
    await shop.weir.line(/level=warning msg="cannot notify the service manager" reason=/);
    await shop.drain();
    expect(shop.weir.output.match(/cannot notify the service manager/g)).toHaveLength(1);
  });
});

describe('a service with a watchdog', () => {
  it('gives signs of life until its event loop hangs, with one process and with workers', async () => {
    await using one = await start({ ...WATCHDOG, NODE_OPTIONS: BLOCK_ON_SIGNAL });
    await using several = await start({ ...WATCHDOG, WORKERS: '2' });
    for (const managed of [one, several]) await managed.live(3);
    one.shop.weir.signal('SIGWINCH');
    await one.shop.weir.line(/^the event loop is blocked$/);
    // What was sent before has arrived when another service, which does not hang, has sent more.
    await several.live(5);
    const atHang = one.signsOfLife();
    await several.live(5);
    expect(one.signsOfLife()).toBe(atHang);
  });

  it('does not start without the native package, and names both remedies', async () => {
    await using managed = await start({ ...WATCHDOG, ...WITHOUT_PACKAGE }, false);
    expect(await managed.shop.weir.exited).toBe(1);
    expect(managed.shop.weir.output).toMatch(
      /WATCHDOG_USEC is set, but the watchdog cannot be notified.*npm install --include=optional, or remove WatchdogSec=/,
    );
  });
});

/** Where to listen, by the name of the listener: a port of 127.0.0.1, or the path of a Unix socket. */
type Sockets = Readonly<Record<string, string | number>>;

/** The built service as systemd starts it: at the first connection to a socket that it inherits. */
class SocketActivated extends Daemon {
  readonly #addresses: readonly string[];
  readonly #options: readonly string[];

  private constructor(sockets: Sockets, env: Environment) {
    super();
    this.#addresses = Object.values(sockets).map((at) => `--listen=${typeof at === 'number' ? `127.0.0.1:${at}` : at}`);
    const settings = Object.entries(env).map(([name, value]) => `--setenv=${name}=${value}`);
    this.#options = [`--fdname=${Object.keys(sockets).join(':')}`, ...settings];
  }

  /** Resolves when all are listened on. */
  static listen(sockets: Sockets, env: Environment): Promise<SocketActivated> {
    return new SocketActivated(sockets, env).started();
  }

  async run(): Promise<void> {
    this.launch('systemd-socket-activate', ...this.#addresses, ...this.#options, process.execPath, MAIN);
    await this.until('all sockets are listened on', () => {
      return this.lines.filter((line) => line.startsWith('Listening on ')).length === this.#addresses.length;
    });
  }

  /** What it has written. */
  get output(): string {
    return this.lines.join('\n');
  }

  /** Waits for a line. */
  line(pattern: RegExp): Promise<string> {
    return this.until(`there is a line like ${String(pattern)}`, () => this.lines.find((line) => pattern.test(line)));
  }
}

describe('a service that inherits its sockets', () => {
  // An address on which nothing could listen: only the inherited sockets can be meant.
  const env: Record<string, string> = { HOST: '192.0.2.1', GRPC_HOST: '192.0.2.1', LOG_LEVEL: 'info' };
  let rules: RuleFolder;
  beforeAll(async () => {
    rules = await RuleFolder.with({ 'shop.yaml': SHOP });
    Object.assign(env, rules.env, { BACKEND_TYPE: 'memory' });
  });
  afterAll(() => rules[Symbol.asyncDispose]());

  it.each(['1', '2'])(
    'is started by the first call, answers it, and serves on all, with WORKERS=%s',
    async (WORKERS) => {
      const [grpc, http, debug, metrics] = await freePorts(4);
      const settings = { ...env, WORKERS, DEBUG_HOST: '192.0.2.1', USE_PULLMETRICS: 'true' };
      await using weir = await SocketActivated.listen({ http, metrics, grpc, debug }, settings);
      expect(weir.output).not.toContain('msg=');
      using client = new RateLimitClient(`127.0.0.1:${grpc}`);
      expect((await client.shouldRateLimit('shop', ['user=x'])).statuses[0]?.limitRemaining).toBe(999_999);
      expect(await weir.line(/msg="?serving/)).toContain(
        `grpc=127.0.0.1:${grpc} http=127.0.0.1:${http} debug=127.0.0.1:${debug}`,
      );
      for (const path of [`${http}/readyz`, `${debug}/readyz`, `${metrics}/metrics`]) {
        expect((await fetch(`http://127.0.0.1:${path}`)).status).toBe(200);
      }
      weir.signal('SIGTERM');
      await weir.line(/drained; the process exits.*exit_code=0/);
      // No process, such as a worker, keeps a socket.
      for (const port of [grpc, http, debug, metrics]) expect(await isListening(port)).toBe(false);
    },
  );

  it('does not start with a Unix socket or a socket that has no known name, and says what is accepted', async () => {
    using folder = new SocketFolder();
    const [http, web] = await freePorts(2);
    await using unix = await SocketActivated.listen({ grpc: folder.path, http }, { ...env, DEBUG_PORT: '0' });
    await using unknown = await SocketActivated.listen({ web }, env);
    for (const port of [http, web]) void fetch(`http://127.0.0.1:${port}/livez`).catch(() => undefined);
    expect(await unix.line(/cannot listen/)).toContain(
      'cannot listen on the inherited socket with file descriptor 3: it is not a TCP socket',
    );
    expect(await unknown.line(/LISTEN_FDNAMES/)).toContain(
      String.raw`names socket 1 of 1 \"web\"; set FileDescriptorName= in its unit`,
    );
  });
});
