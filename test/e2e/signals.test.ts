import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { RateLimitClient } from '../support/clients/grpc-client';
import { readMarkdown } from '../docs/markdown-files';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000000}}]\n',
};
const SIGNAL_AT_START = join(__dirname, '../support/processes/signal-at-start.cjs');
const SIGNAL_WHILE_OPENING = join(__dirname, '../support/processes/signal-while-opening.cjs');
const DRAIN = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGPWR'] as const;
const IGNORED = ['SIGUSR1', 'SIGUSR2', 'SIGALRM', 'SIGVTALRM', 'SIGPROF', 'SIGIO', 'SIGSTKFLT'] as const;

let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

/** Calls the service until it is stopped; every call must be answered, or rejected as unavailable during the drain. */
class Load implements AsyncDisposable {
  readonly #client: RateLimitClient;
  readonly #callers: Promise<void>[];
  #isRunning = true;
  answered = 0;
  readonly failures: unknown[] = [];

  constructor(weir: WeirProcess) {
    this.#client = new RateLimitClient(weir.grpcAddress);
    this.#callers = Array.from({ length: 16 }, () => this.#call());
  }

  async #call(): Promise<void> {
    while (this.#isRunning) {
      try {
        await this.#client.shouldRateLimit('shop', ['user=x']);
        this.answered += 1;
      } catch (error) {
        this.#isRunning = false;
        this.failures.push(error);
      }
    }
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    await Promise.all(this.#callers);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    this.#client[Symbol.dispose]();
  }
}

describe('under load, the service', () => {
  it.each(DRAIN)('drains on %s', async (signal) => {
    await using weir = await WeirProcess.start({ env: rules.env });
    await using load = new Load(weir);
    await weir.until('calls to be answered', () => load.answered > 100);
    weir.signal(signal);
    expect(await weir.exited).toBe(0);
    await load.stop();
    expect(weir.output).toMatch(new RegExp(`draining: .* signal=${signal}`));
    expect(weir.output).toContain('drained; the process exits');
    for (const failure of load.failures) expect(failure).toMatchObject({ code: 14 });
  });

  it('ignores signals that mean nothing to it, with a line for each', async () => {
    await using weir = await WeirProcess.start({ env: { ...rules.env, LOG_LEVEL: '' } });
    await using load = new Load(weir);
    for (const signal of IGNORED) {
      weir.signal(signal);
      await weir.line(new RegExp(`level=warning msg="signal ignored: .*" signal=${signal}$`));
    }
    const before = load.answered;
    await weir.until('more calls to be answered', () => load.answered > before + 100);
    expect(load.failures).toEqual([]);
    expect(weir.output).not.toContain('Debugger');
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
  });
});

test.each(['1', '2'])(
  'the service drains on a signal that it receives while its first listener opens, with WORKERS=%s',
  async (workers) => {
    const env = { ...rules.env, WORKERS: workers, NODE_OPTIONS: `--require=${SIGNAL_WHILE_OPENING}` };
    await using weir = await WeirProcess.start({ env, awaitServing: false });
    expect(await weir.exited).toBe(0);
    expect(weir.output).toMatch(/draining: .* signal=SIGTERM/);
  },
);

test('the service closes the inspector that Node opens for a SIGUSR1 before the service has started', async () => {
  const env = { ...rules.env, NODE_OPTIONS: `--inspect-port=0 --require ${SIGNAL_AT_START}` };
  await using weir = await WeirProcess.start({ env });
  const opened = await weir.line(/Debugger listening on/);
  const port = /ws:\/\/127\.0\.0\.1:(\d+)/.exec(opened)?.[1];
  expect(port).toBeDefined();
  await weir.until('the inspector to be closed', () =>
    fetch(`http://127.0.0.1:${port}/json`).then(
      () => false,
      () => true,
    ),
  );
});

test('docs/operations.md lists the signals with what the service does', () => {
  const rows = readMarkdown('docs/operations.md').split('\n');
  expect(rows).toContain(`| ${DRAIN.join(', ')} | drains; the second one ends the process |`);
  expect(rows).toContain(`| ${IGNORED.join(', ')} | ignores it, with a line in the log |`);
});

describe('a program whose output is closed by its reader ends without an error', () => {
  it.each([
    'main.js --help',
    'cli/weir-admin.js -h',
    'cli/weir-bump.js -h',
    'cli/weir-check.js -h',
    'cli/weir-client.js -h',
  ])('%s', (program) => {
    const command = `{ node dist/${program}; echo "code $?" >&3; } 3>&2 2>&1 | true`;
    // Several times, because the reader may be slower.
    const results = Array.from({ length: 5 }, () => spawnSync('sh', ['-c', command], { encoding: 'utf8' }).stderr);
    expect(new Set(results)).toEqual(new Set(['code 0\n']));
  });
});
