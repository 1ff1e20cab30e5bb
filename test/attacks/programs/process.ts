import { readFile, readdir, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { requestMessage } from '../../support/clients/grpc-client';
import { until } from '../../support/waiting/until';
import { Answers, type Attack, type Target } from '../attack';
import { GrpcPeer, concurrently } from '../peers';

/** Calls with messages that are not requests: each is a log line at level debug. */
async function malformedCalls(target: Target, answers: Answers): Promise<void> {
  using peer = new GrpcPeer(target, answers);
  await concurrently(20_000, 50, () => peer.call(Buffer.from([0x0f])));
}

/** Calls that are answered: with the statistics on standard output, each is a line. */
async function validCalls(target: Target, answers: Answers): Promise<void> {
  using peer = new GrpcPeer(target, answers);
  const message = requestMessage('no-such-domain', ['k=v']);
  await concurrently(5_000, 50, () => peer.call(message));
}

/** Sends each signal many times, and records how many sockets listen that did not before. */
async function signals(target: Target, answers: Answers, names: readonly NodeJS.Signals[]): Promise<void> {
  const before = await listeners(target.pid);
  for (let round = 0; round < 50; round += 1) {
    for (const name of names) if (!isGone(() => process.kill(target.pid, name))) answers.add('sent');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  answers.add('listeners opened', (await listeners(target.pid)) - before);
}

/** Whether the process that the signal is for has ended. */
function isGone(kill: () => void): boolean {
  try {
    kill();
    return false;
  } catch {
    return true;
  }
}

/** How many TCP sockets of the process listen. */
async function listeners(pid: number): Promise<number> {
  const own = new Set<string>();
  for (const descriptor of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
    const [, inode] = /socket:\[(\d+)\]/.exec(await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')) ?? [];
    if (inode !== undefined) own.add(inode);
  }
  const tables = await Promise.all(['tcp', 'tcp6'].map((table) => readFile(`/proc/net/${table}`, 'utf8')));
  const sockets = tables.flatMap((table) => table.split('\n').slice(1)).map((line) => line.trim().split(/\s+/));
  return sockets.filter(([, , , state, , , , , , inode]) => state === '0A' && own.has(inode ?? '')).length;
}

const HOUR = 3_600_000;
let clocks = 0;

/** Uses up a limit, and calls again while the clock of the service is two hours ahead, and when it is right again. */
async function jumpingClock(target: Target, answers: Answers): Promise<void> {
  clocks += 1;
  const message = requestMessage('clock', [`k=${process.pid}-${clocks}`]);
  async function call(when: string) {
    const received = new Answers();
    using peer = new GrpcPeer(target, received);
    for (let count = 0; count < 10; count += 1) await peer.call(message);
    for (const [answer, count] of received.entries()) answers.add(`${answer} ${when}`, count);
  }
  await call('before');
  await setClock(target, 2 * HOUR);
  await call('ahead');
  // As long as it takes the service to notice that a window has passed.
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  await setClock(target, 0);
  await call('after');
}

async function setClock({ rules }: Target, jump: number): Promise<void> {
  const path = join(rules, '../clock');
  await writeFile(path, String(jump));
  await until(
    'the clock has jumped',
    async () => (await readFile(`${path}.applied`, 'utf8').catch(() => '')) === String(jump),
  );
}

/** What happens to the process itself: its outputs, its signals, its clock. */
export const PROCESS = {
  'standard error is not read, at LOG_LEVEL=debug, during 20,000 malformed calls': {
    settings: { LOG_LEVEL: 'debug' },
    unread: 'stderr',
    run: malformedCalls,
  },
  'standard output is not read, with the statistics on it, during 5,000 calls': {
    settings: { USE_PUSHSTATS: 'false', STATS_FLUSH_INTERVAL: '50ms' },
    unread: 'stdout',
    run: validCalls,
  },
  '50 times SIGUSR1': { run: (target, answers) => signals(target, answers, ['SIGUSR1']) },
  '50 times SIGUSR2 and SIGALRM': {
    run: (target, answers) => signals(target, answers, ['SIGUSR2', 'SIGALRM']),
  },
  'the clock jumps ahead by 2 hours, and back': {
    settings: { NODE_OPTIONS: `--require=${join(__dirname, '../clock-from-file.cjs')}` },
    rules: {
      'clock.yaml': 'domain: clock\ndescriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: 5 } }]\n',
    },
    run: jumpingClock,
  },
} as const satisfies Record<string, Attack>;
