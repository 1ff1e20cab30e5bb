import childProcess, { ChildProcess } from 'node:child_process';
import { Subject } from 'rxjs';
import type { Order, Report, WorkerState } from '../../src/workers/messages';
import { RestartBackoff } from '../../src/workers/primary/backoff';
import { workerExecArguments } from '../../src/workers/primary/exec-arguments';
import type { Responsiveness } from '../../src/workers/primary/responsiveness';
import { WorkerPool, isReady } from '../../src/workers/primary/worker-pool';
import { type WorkerExit, WorkerProcess } from '../../src/workers/primary/worker-process';
import { workerArguments, workerNumber } from '../../src/workers/worker/role';
import { RecordedLog } from '../support/data/recorded-log';

/** A worker that does what the test says. Records its orders. */
class FakeWorker {
  readonly reports$ = new Subject<Report>();
  readonly states$ = new Subject<WorkerState>();
  readonly responsiveness$ = new Subject<Responsiveness>();
  readonly exited$ = new Subject<WorkerExit>();
  readonly received: string[] = [];

  constructor(readonly number: number) {}

  start(): void {
    this.received.push('start');
  }

  order({ kind }: Order): void {
    this.received.push(kind);
  }

  kill(): void {
    this.received.push('kill');
  }

  serves(): void {
    this.reports$.next({ kind: 'serving', store: 'memory' });
  }

  ends(exit: Partial<WorkerExit>): void {
    this.exited$.next({ code: null, signal: null, ...exit });
    this.exited$.complete();
  }
}

const KILLED = { signal: 'SIGKILL' } as const;
const LOST = 'a worker has ended while it drained; its calls have failed';

/** A pool that has started two workers. */
function startPool({ areServing = false } = {}) {
  const log = new RecordedLog();
  const workers: FakeWorker[] = [];
  const pool = new WorkerPool({
    count: 2,
    fork: (number) => workers[workers.push(new FakeWorker(number)) - 1] as unknown as WorkerProcess,
    log,
  });
  pool.start();
  if (areServing) for (const worker of workers) worker.serves();
  return { pool, log, workers: workers as [FakeWorker, FakeWorker, ...FakeWorker[]] };
}

/** Drains a pool until its workers have ended. */
function drain(pool: WorkerPool): { isOver: boolean } {
  const progress = { isOver: false };
  pool.drain().subscribe({
    complete: () => pool.finish().subscribe({ complete: () => (progress.isOver = true) }),
  });
  return progress;
}

describe('a worker that does not answer', () => {
  it('is killed when it is stuck, also before it serves', () => {
    const { log, workers } = startPool();
    for (const state of ['silent', 'stuck'] as const) workers[0].responsiveness$.next(state);
    expect(workers.map(({ received }) => received)).toEqual([['start', 'kill'], ['start']]);
    const fields = { worker: 1, reason: 'it has not answered for 60000 ms' };
    expect(log.lines).toEqual([{ level: 'error', message: 'a worker does not answer and is killed', fields }]);
  });

  it('is not ready until it answers again, with a line for each, unless it does not serve yet', () => {
    const { pool, log, workers } = startPool();
    workers[0].serves();
    for (const worker of workers) worker.responsiveness$.next('silent');
    expect(pool.members.map(isReady)).toEqual([false, false]);
    for (const worker of workers) worker.responsiveness$.next('responsive');
    workers[1].serves();
    expect(pool.members.map(isReady)).toEqual([true, true]);
    const silent = 'a worker does not answer; others get the new connections';
    expect(log.messages).toEqual([silent, 'a worker answers again']);
  });
});

describe('a drain of the workers', () => {
  it.each([
    ['no line if all exit with 0', { code: 0 }],
    ['killed by SIGKILL', KILLED],
    ['exit code 1', { code: 1 }],
  ])(
    'is complete when all workers have drained and ended, and has lost calls if one ends in another way: %s',
    (reason, exit) => {
      const { pool, log, workers } = startPool({ areServing: true });
      const progress = drain(pool);
      workers[1].reports$.next({ kind: 'drained' });
      expect(progress.isOver).toBe(false);
      workers[0].ends(exit);
      workers[1].ends({ code: 0 });
      expect(workers[1].received).toEqual(['start', 'drain', 'finish']);
      const lost =
        'code' in exit && exit.code === 0 ? [] : [{ level: 'error', message: LOST, fields: { worker: 1, reason } }];
      expect([progress.isOver, pool.hasLostCalls, log.lines]).toEqual([true, lost.length > 0, lost]);
    },
  );

  it('begins before its calls are awaited: from then on, no worker that ends is replaced', () => {
    jest.useFakeTimers();
    try {
      const { pool, log, workers } = startPool({ areServing: true });
      workers[0].ends(KILLED);
      pool.stopReplacing();
      workers[1].ends(KILLED);
      jest.advanceTimersByTime(60_000);
      expect([workers.length, pool.hasLostCalls]).toEqual([2, true]);
      expect(log.messages).toEqual(['a worker has ended; its calls have failed, and it is replaced', LOST]);
    } finally {
      jest.useRealTimers();
    }
  });

  it('kills the workers that do not serve yet, which have no calls to lose', () => {
    const { pool, log, workers } = startPool();
    const progress = drain(pool);
    // It was about to serve when it was killed.
    workers[0].serves();
    for (const worker of workers) worker.ends(KILLED);
    for (const { received } of workers) expect(received).toEqual(['start', 'kill', 'drain']);
    expect([progress.isOver, pool.hasLostCalls, log.lines]).toEqual([true, false, []]);
  });
});

test('the delay before a worker is replaced doubles from 100 ms to 10 s, until it has lived for a minute', () => {
  const backoff = new RestartBackoff();
  const delays = Array.from({ length: 10 }, () => backoff.delayAfter(59_999));
  expect(delays).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000]);
  expect([backoff.delayAfter(60_000), backoff.delayAfter(0)]).toEqual([100, 200]);
});

test('the start of a worker throws when too many files are open, and handles the error event that follows', () => {
  // The child that Node returns then: without streams and process.
  const child = new ChildProcess();
  const fork = jest.spyOn(childProcess, 'fork').mockReturnValue(child);
  function start() {
    return new WorkerProcess(1, { program: 'main.js', environment: {} });
  }
  expect(start).toThrow(new Error('too many open files in this process or on this machine (EMFILE or ENFILE)'));
  // Throws if no listener is attached; in the primary, the exception would not be caught.
  const error = Object.assign(new Error('spawn node EMFILE'), { code: 'EMFILE' });
  expect(() => child.emit('error', error)).not.toThrow();
  fork.mockRestore();
});

test.each([
  ['--require ./hook.cjs --max-old-space-size=200', ''],
  ['--inspect', '--inspect-port=9231'],
  ['--inspect=0.0.0.0:9229', '--inspect-port=9231'],
  ['--inspect-brk', '--inspect-port=9231'],
  ['--inspect-port=9229', '--inspect-port=9231'],
  ['--cpu-prof --cpu-prof-name=weir.cpuprofile', '--cpu-prof-name=weir.worker-2.cpuprofile'],
  ['--heap-prof-name=weir.heapprofile', '--heap-prof-name=weir.worker-2.heapprofile'],
])('a worker has the arguments of the primary, with ports and files of its own: %s', (text, own) => {
  const [given, added] = [text.split(' '), own === '' ? [] : [own]];
  const ofPrimary = { execArgv: given, nodeOptions: undefined, debugPort: 9229 };
  expect(workerExecArguments(2, ofPrimary)).toEqual([...given, ...added]);
  expect(workerExecArguments(2, { ...ofPrimary, execArgv: [], nodeOptions: `--x ${text}` })).toEqual(added);
});

test('a process is a worker only when it was forked with the arguments of one', () => {
  const argv = ['node', 'main.js', ...workerArguments(3)];
  expect(workerNumber({ argv, connected: true })).toBe(3);
  expect([workerNumber({ argv }), workerNumber({ argv, connected: false })]).toEqual([undefined, undefined]);
  for (const others of [
    [],
    ['--worker'],
    ['--worker', '0'],
    ['--worker', 'x'],
    ['--worker', '1', 'more'],
    ['--help'],
  ]) {
    expect(workerNumber({ argv: ['node', 'main.js', ...others], connected: true })).toBeUndefined();
  }
});
