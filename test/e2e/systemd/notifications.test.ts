import { setTimeout as pause } from 'node:timers/promises';
import { RuleFolder } from '../../support/data/rule-folder';
import { WeirProcess } from '../../support/processes/weir-process';
import { UnixDatagramReceiver } from '../../support/servers/unix-datagram-receiver';
import { SocketFolder } from '../../support/servers/unix-stream-receiver';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};
const PERIOD = 200;
const WATCHDOG = { WATCHDOG_USEC: String(PERIOD * 1000) };
const BLOCK_ON_SIGNAL = `--require=${require.resolve('../../support/processes/block-on-signal.cjs')}`;
const WITHOUT_PACKAGE = {
  NODE_OPTIONS: `--require=${require.resolve('../../integration/statistics/without-native-package.cjs')}`,
};

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

function messagesOf({ datagrams }: UnixDatagramReceiver): readonly string[] {
  return datagrams.map(String).filter((message) => message !== 'WATCHDOG=1' && message !== 'BARRIER=1');
}

function signsOfLife({ lines }: UnixDatagramReceiver): number {
  return lines.filter((line) => line === 'WATCHDOG=1').length;
}

/** The service from start to end, with the messages that it has sent. */
async function messagesOfLife(env: Readonly<Record<string, string>>): Promise<readonly string[]> {
  await using folder = await SocketFolder.make();
  await using receiver = await UnixDatagramReceiver.start(folder.path);
  await using weir = await WeirProcess.start({ env: { ...rules.env, NOTIFY_SOCKET: folder.path, ...env } });
  await weir.until('the service to be ready', () => messagesOf(receiver).includes('STATUS=serving'));
  await weir.until('the service to be ready', () => messagesOf(receiver).includes('READY=1'));
  weir.signal('SIGTERM');
  expect(await weir.exited).toBe(0);
  await receiver.until('the last message', () => receiver.lines.includes('STOPPING=1'));
  return messagesOf(receiver);
}

describe('a service with NOTIFY_SOCKET', () => {
  it.each([
    ['one process', { SHUTDOWN_DELAY: '50ms' }, 15_050_000],
    ['two workers', { WORKERS: '2' }, 15_000_000],
    ['one process without the native package, by systemd-notify', WITHOUT_PACKAGE, 15_000_000],
  ])('reports once that it is ready, and that it stops, with %s', async (_, env, microseconds) => {
    const messages = await messagesOfLife(env);
    expect(messages[0]).toMatch(/^STATUS=starting: (?:waiting for|opening)/);
    expect(messages.filter((message) => message === 'READY=1')).toHaveLength(1);
    expect(messages.at(-1)).toBe(`STOPPING=1\nSTATUS=stopping after SIGTERM\nEXTEND_TIMEOUT_USEC=${microseconds}`);
  });

  it('says what it waits for until it is ready', async () => {
    await using folder = await SocketFolder.make();
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    await using weir = await WeirProcess.start({
      env: { ...rules.env, NOTIFY_SOCKET: folder.path, RUNTIME_SUBDIRECTORY: 'missing' },
      awaitServing: false,
    });
    await weir.until('the status', () =>
      messagesOf(receiver).includes('STATUS=starting: waiting for the first valid rules'),
    );
    await weir.line(/no active rules; not serving/);
    expect(messagesOf(receiver)).not.toContain('READY=1');
  });

  it('logs once that the manager cannot be reached, and serves', async () => {
    await using folder = await SocketFolder.make();
    await using weir = await WeirProcess.start({ env: { ...rules.env, NOTIFY_SOCKET: folder.path } });
    await weir.line(/level=warning msg="cannot notify the service manager" reason=/);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    expect(weir.output.match(/cannot notify the service manager/g)).toHaveLength(1);
  });
});

describe('a service with a watchdog', () => {
  it.each(['1', '2'])('gives signs of life until its event loop hangs, with WORKERS=%s', async (workers) => {
    await using folder = await SocketFolder.make();
    await using receiver = await UnixDatagramReceiver.start(folder.path);
    const env = { ...rules.env, ...WATCHDOG, NOTIFY_SOCKET: folder.path, WORKERS: workers };
    await using weir = await WeirProcess.start({ env: { ...env, NODE_OPTIONS: BLOCK_ON_SIGNAL } });
    const before = signsOfLife(receiver);
    await weir.until('signs of life', () => signsOfLife(receiver) >= before + 3);
    weir.signal('SIGWINCH');
    await weir.line(/^the event loop is blocked$/);
    // What was sent before arrives within the first pause.
    await pause(15 * PERIOD);
    const atHang = signsOfLife(receiver);
    await pause(5 * PERIOD);
    expect(signsOfLife(receiver)).toBe(atHang);
  });

  it('does not start without the native package, and names both remedies', async () => {
    await using folder = await SocketFolder.make();
    const env = { ...rules.env, ...WATCHDOG, ...WITHOUT_PACKAGE, NOTIFY_SOCKET: folder.path };
    await using weir = await WeirProcess.start({ env, awaitServing: false });
    expect(await weir.exited).toBe(1);
    expect(weir.output).toContain('WATCHDOG_USEC is set, but the watchdog cannot be notified');
    expect(weir.output).toContain(
      'install it with npm install --include=optional, or remove WatchdogSec= from the unit',
    );
  });
});
