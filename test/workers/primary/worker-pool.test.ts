import { Subject } from 'rxjs';
import type { Order, Report, WorkerState } from '../../../src/workers/messages';
import type { Responsiveness } from '../../../src/workers/primary/responsiveness';
import { WorkerPool, isReady } from '../../../src/workers/primary/worker-pool';
import type { WorkerExit, WorkerProcess } from '../../../src/workers/primary/worker-process';
import { RecordedLog } from '../../support/data/recorded-log';

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

/** A pool that has started two workers. */
function startPool() {
  const log = new RecordedLog();
  const workers: FakeWorker[] = [];
  const pool = new WorkerPool({
    count: 2,
    fork: (number) => {
      const worker = new FakeWorker(number);
      workers.push(worker);
      return worker as unknown as WorkerProcess;
    },
    log,
  });
  pool.start();
  return { pool, log, workers: workers as [FakeWorker, FakeWorker, ...FakeWorker[]] };
}

/** The same, when both are serving. */
function startServingPool() {
  const started = startPool();
  for (const worker of started.workers) worker.serves();
  return started;
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
    workers[0].responsiveness$.next('silent');
    workers[0].responsiveness$.next('stuck');

    expect(workers.map(({ received }) => received)).toEqual([['start', 'kill'], ['start']]);
    expect(log.lines).toEqual([
      {
        level: 'error',
        message: 'a worker does not answer and is killed',
        fields: { worker: 1, reason: 'it has not answered for 60000 ms' },
      },
    ]);
  });

  it('is not ready until it answers again, with a line for each', () => {
    const { pool, log, workers } = startServingPool();
    workers[0].responsiveness$.next('silent');
    expect(pool.members.map(isReady)).toEqual([false, true]);
    workers[0].responsiveness$.next('responsive');
    expect(pool.members.map(isReady)).toEqual([true, true]);
    expect(log.messages).toEqual([
      'a worker does not answer; others get the new connections',
      'a worker answers again',
    ]);
  });

  it('is neither reported nor kept from being ready by a silence before it serves', () => {
    const { pool, log, workers } = startPool();
    for (const state of ['responsive', 'silent', 'responsive'] as const) workers[0].responsiveness$.next(state);
    workers[0].serves();
    workers[0].responsiveness$.next('responsive');
    expect([pool.members.map(isReady), log.messages]).toEqual([[true, false], []]);
  });
});

describe('a drain of the workers', () => {
  it('is complete when all workers have drained and exited with 0', () => {
    const { pool, log, workers } = startServingPool();
    const progress = drain(pool);
    for (const worker of workers) worker.reports$.next({ kind: 'drained' });
    for (const worker of workers) worker.ends({ code: 0 });
    expect(workers.map(({ received }) => received)).toEqual([
      ['start', 'drain', 'finish'],
      ['start', 'drain', 'finish'],
    ]);
    expect([progress.isOver, pool.hasLostCalls, log.lines]).toEqual([true, false, []]);
  });

  it.each([
    ['killed by SIGKILL', KILLED],
    ['exit code 1', { code: 1 }],
  ])('has lost calls when a worker ends in another way, with a line that says how: %s', (reason, exit) => {
    const { pool, log, workers } = startServingPool();
    const progress = drain(pool);
    workers[0].ends(exit);
    workers[1].reports$.next({ kind: 'drained' });
    workers[1].ends({ code: 0 });
    expect([progress.isOver, pool.hasLostCalls]).toEqual([true, true]);
    expect(log.lines).toEqual([
      {
        level: 'error',
        message: 'a worker has ended while it drained; its calls have failed',
        fields: { worker: 1, reason },
      },
    ]);
  });

  it('begins before its calls are awaited: from then on, no worker that ends is replaced', () => {
    jest.useFakeTimers();
    try {
      const { pool, log, workers } = startServingPool();
      workers[0].ends(KILLED);
      pool.stopReplacing();
      workers[1].ends(KILLED);
      jest.advanceTimersByTime(60_000);
      expect([workers.length, pool.hasLostCalls, log.messages]).toEqual([
        2,
        true,
        [
          'a worker has ended; its calls have failed, and it is replaced',
          'a worker has ended while it drained; its calls have failed',
        ],
      ]);
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
    expect(workers.map(({ received }) => received)).toEqual([
      ['start', 'kill', 'drain'],
      ['start', 'kill', 'drain'],
    ]);
    expect([progress.isOver, pool.hasLostCalls, log.lines]).toEqual([true, false, []]);
  });

  it('has no lines about the workers that are killed when it is aborted', () => {
    const { pool, log, workers } = startServingPool();
    drain(pool);
    pool.kill();
    for (const worker of workers) worker.ends(KILLED);
    expect([pool.hasLostCalls, log.lines]).toEqual([false, []]);
  });
});
