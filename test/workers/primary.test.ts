import childProcess, { ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';
import { BehaviorSubject, EMPTY, NEVER, Subject } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { sendJson } from '../../src/workers/channel/json-frames';
import { StreamChannel } from '../../src/workers/channel/stream-channel';
import { TOPICS } from '../../src/workers/channel/topics';
import type { Order, Passed, Report, SocketNotice, WorkerState } from '../../src/workers/messages';
import { RestartBackoff } from '../../src/workers/primary/backoff';
import { ConnectionDispatch } from '../../src/workers/primary/connection-dispatch';
import { workerExecArguments } from '../../src/workers/primary/exec-arguments';
import { instance } from '../../src/workers/primary/instance';
import { leastLoaded } from '../../src/workers/primary/least-loaded';
import type { Responsiveness } from '../../src/workers/primary/responsiveness';
import { WorkerPool } from '../../src/workers/primary/worker-pool';
import { type WorkerExit, WorkerProcess } from '../../src/workers/primary/worker-process';
import { PrimaryLink } from '../../src/workers/worker/primary-link';
import { workerArguments, workerNumber } from '../../src/workers/worker/role';
import { RecordedLog } from '../support/data/recorded-log';
import { until } from '../support/waiting/until';
import { duplexPair } from '../support/workers/channel-pair';

/** A worker that does what the test says. Records its orders, and the sockets that it gets. */
class FakeWorker {
  readonly reports$ = new Subject<Report>();
  readonly states$ = new Subject<WorkerState>();
  readonly notices$ = new Subject<SocketNotice>();
  readonly responsiveness$ = new Subject<Responsiveness>();
  readonly exited$ = new Subject<WorkerExit>();
  readonly received: string[] = [];
  readonly sockets: Socket[] = [];

  constructor(readonly number: number) {}

  start = () => void this.received.push('start');
  order = ({ kind }: Order) => void this.received.push(kind);
  kill = () => void this.received.push('kill');
  pass = (_: Passed, socket: Socket) => void this.sockets.push(socket);

  serves(): void {
    this.reports$.next({ kind: 'serving', store: 'memory' });
  }

  ends(exit: Partial<WorkerExit>): void {
    this.exited$.next({ code: null, signal: null, ...exit });
    this.exited$.complete();
  }
}

afterEach(() => void jest.useRealTimers());

describe('the pool of workers', () => {
  const KILLED = { signal: 'SIGKILL' } as const;
  const LOST = 'a worker has ended while it drained; its calls have failed';
  const REPLACED = 'a worker has ended; its calls have failed, and it is replaced';

  /** A pool that has started two workers. */
  function startPool({ areServing = false } = {}) {
    const log = new RecordedLog();
    const workers: FakeWorker[] = [];
    const failing = { starts: 0 };
    const pool = new WorkerPool({
      count: 2,
      fork: (number) => {
        if ((failing.starts -= 1) >= 0) throw new Error('too many open files');
        return workers[workers.push(new FakeWorker(number)) - 1] as unknown as WorkerProcess;
      },
      log,
    });
    pool.start();
    if (areServing) for (const worker of workers) worker.serves();
    return { pool, log, failing, workers: workers as [FakeWorker, FakeWorker, ...FakeWorker[]] };
  }

  /** Drains a pool until its workers have ended. */
  function drain(pool: WorkerPool): { isOver: boolean } {
    const progress = { isOver: false };
    pool.drain().subscribe({
      complete: () => pool.finish().subscribe({ complete: () => (progress.isOver = true) }),
    });
    return progress;
  }

  it('kills a worker that is stuck, also before it serves', () => {
    const { log, workers } = startPool();
    for (const state of ['silent', 'stuck'] as const) workers[0].responsiveness$.next(state);
    expect(workers.map(({ received }) => received)).toEqual([['start', 'kill'], ['start']]);
    const fields = { worker: 1, reason: 'it has not answered for 60000 ms' };
    expect(log.lines).toEqual([{ level: 'error', message: 'a worker does not answer and is killed', fields }]);
  });

  it('replaces a worker that ends, also when it cannot be started at first, until the drain begins', () => {
    jest.useFakeTimers();
    const { pool, log, failing, workers } = startPool({ areServing: true });
    failing.starts = 1;
    workers[0].ends(KILLED);
    jest.advanceTimersByTime(60_000);
    expect(workers.map(({ number }) => number)).toEqual([1, 2, 1]);
    workers[2]?.ends(KILLED);
    pool.stopReplacing();
    workers[1].ends(KILLED);
    jest.advanceTimersByTime(60_000);
    expect([workers.length, pool.hasLostCalls]).toEqual([3, true]);
    expect(log.messages).toEqual([REPLACED, REPLACED, REPLACED, LOST]);
  });

  it('drains until all workers have ended, and has lost calls if the exit code of one is not 0', () => {
    const { pool, log, workers } = startPool({ areServing: true });
    const progress = drain(pool);
    workers[1].reports$.next({ kind: 'drained' });
    workers[1].ends({ code: 0 });
    expect([progress.isOver, pool.hasLostCalls]).toEqual([false, false]);
    workers[0].ends({ code: 1 });
    expect(workers[1].received).toEqual(['start', 'drain']);
    const fields = { worker: 1, reason: 'exit code 1' };
    expect([progress.isOver, pool.hasLostCalls]).toEqual([true, true]);
    expect(log.lines).toEqual([{ level: 'error', message: LOST, fields }]);
  });

  it('kills in a drain the workers that do not serve yet, which have no calls to lose', () => {
    const { pool, log, workers } = startPool();
    const progress = drain(pool);
    // It was about to serve when it was killed.
    workers[0].serves();
    for (const worker of workers) worker.ends(KILLED);
    for (const { received } of workers) expect(received).toEqual(['start', 'kill', 'drain']);
    expect([progress.isOver, pool.hasLostCalls, log.lines]).toEqual([true, false, []]);
  });

  it('waits from 100 ms to 10 s, twice as long each time, until a worker has lived for a minute', () => {
    const backoff = new RestartBackoff();
    const delays = Array.from({ length: 9 }, () => backoff.delayAfter(59_999));
    expect(delays).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
    expect([backoff.delayAfter(60_000), backoff.delayAfter(0)]).toEqual([100, 200]);
  });
});

describe('the process of a worker', () => {
  it('throws when too many files are open, and handles the error event that follows', () => {
    // The child that Node returns then: without streams and process.
    const child = new ChildProcess();
    const fork = jest.spyOn(childProcess, 'fork').mockReturnValue(child);
    const message = 'too many open files in this process or on this machine (EMFILE or ENFILE)';
    expect(() => new WorkerProcess(1, { program: 'main.js', environment: {} })).toThrow(new Error(message));
    // Throws if no listener is attached; in the primary, the exception would not be caught.
    const error = Object.assign(new Error('spawn node EMFILE'), { code: 'EMFILE' });
    expect(() => child.emit('error', error)).not.toThrow();
    fork.mockRestore();
  });

  it.each([
    ['--require ./hook.cjs --max-old-space-size=200', ''],
    ['--inspect=0.0.0.0:9229', '--inspect-port=9231'],
    ['--cpu-prof --cpu-prof-name=weir.cpuprofile', '--cpu-prof-name=weir.worker-2.cpuprofile'],
  ])('has the arguments of the primary, with ports and files of its own: %s', (text, own) => {
    const [given, added] = [text.split(' '), own === '' ? [] : [own]];
    const ofPrimary = { execArgv: given, nodeOptions: undefined, debugPort: 9229 };
    expect(workerExecArguments(2, ofPrimary)).toEqual([...given, ...added]);
    expect(workerExecArguments(2, { ...ofPrimary, execArgv: [], nodeOptions: `--x ${text}` })).toEqual(added);
  });

  it('is that of a worker only when it was forked with the arguments of one', () => {
    const argv = ['node', 'main.js', ...workerArguments(3)];
    expect([true, false].map((connected) => workerNumber({ argv, connected }))).toEqual([3, undefined]);
    for (const others of ['--help', '--worker', '--worker 0', '--worker 1 more']) {
      expect(workerNumber({ argv: ['node', 'main.js', ...others.split(' ')], connected: true })).toBeUndefined();
    }
  });
});

describe('a connection', () => {
  it('goes to the worker with the fewest of its listener, then of all, among those that answer, if one does', () => {
    function chosen(...workers: readonly (readonly [grpc: number, http: number, isResponsive?: false])[]) {
      const loaded = workers.map(([grpc, http, isResponsive = true]) => ({ load: { grpc, http }, isResponsive }));
      return loaded.findIndex((worker) => worker === leastLoaded(loaded, 'grpc'));
    }
    expect([chosen([2, 0], [1, 9]), chosen([1, 5], [1, 2], [2, 0]), chosen([1, 1], [1, 1])]).toEqual([1, 1, 0]);
    expect([chosen([0, 0, false], [3, 0]), chosen([1, 0, false], [0, 0, false]), chosen()]).toEqual([1, 1, -1]);
  });

  it('waits for the first worker if it is of gRPC, passes to another one until it is taken, and is counted until its end', async () => {
    const serving$ = new Subject<WorkerProcess>();
    const unavailable: Socket[] = [];
    const dispatch = new ConnectionDispatch({
      pool: { serving$ },
      maxGrpcConnections: 2,
      onRefused: () => undefined,
      serveUnavailable: (socket) => unavailable.push(socket),
    });
    const [one, other] = [new FakeWorker(1), new FakeWorker(2)];
    const sockets = Array.from({ length: 5 }, () => new Socket()) as [Socket, Socket, Socket, Socket, Socket];
    const [first, second, third, http, late] = sockets;
    for (const socket of [first, second, third]) dispatch.accepted('grpc', socket);
    dispatch.accepted('http', http);
    expect([third.destroyed, unavailable]).toEqual([true, [http]]);
    serving$.next(one as unknown as WorkerProcess);
    serving$.next(other as unknown as WorkerProcess);
    expect(one.sockets).toEqual([first, second]);
    one.notices$.next({ taken: 1 });
    expect([first.destroyed, second.destroyed, dispatch.count('grpc')]).toEqual([true, false, 2]);
    one.ends({ signal: 'SIGKILL' });
    expect([other.sockets, dispatch.count('grpc')]).toEqual([[second], 1]);
    let settled = 0;
    void dispatch.settled('grpc').then(() => (settled += 1));
    other.notices$.next({ taken: 1 });
    await until('it is settled', () => settled === 1);
    other.notices$.next({ closed: 1 });
    expect([second.destroyed, dispatch.count('grpc')]).toEqual([true, 0]);
    // A worker that hangs does not keep the others from draining.
    dispatch.accepted('grpc', late);
    jest.useFakeTimers({ doNotFake: ['nextTick'] });
    void dispatch.settled('grpc').then(() => (settled += 1));
    await jest.advanceTimersByTimeAsync(999);
    expect(settled).toBe(1);
    await jest.advanceTimersByTimeAsync(1);
    expect(settled).toBe(2);
    // It is closed when it has waited a second for another one.
    other.ends({ signal: 'SIGKILL' });
    await jest.advanceTimersByTimeAsync(999);
    expect([late.destroyed, dispatch.count('grpc')]).toEqual([false, 1]);
    await jest.advanceTimersByTimeAsync(1);
    expect([late.destroyed, dispatch.count('grpc')]).toEqual([true, 0]);
    for (const socket of sockets) socket.destroy();
    dispatch.close();
  });
});

describe('an instance', () => {
  const GOOD = { healthy: true, unhealthy: [] };

  function worker(isServing: boolean, unhealthy: string[] = [], awaited: WorkerState['awaited'] = []) {
    return {
      isServing,
      isResponsive: true,
      state: { health: { healthy: unhealthy.length === 0, unhealthy }, awaited },
    };
  }

  function instanceOf(startsWithoutRules: boolean) {
    const members$ = new BehaviorSubject([worker(true), worker(true)]);
    const termination$ = new Subject<unknown>();
    const sources = { rules$: startsWithoutRules ? EMPTY : NEVER, members$, complete$: NEVER, termination$ };
    const scheduler = new TestScheduler(() => undefined);
    const streams = instance(sources, { startsWithoutRules, needsDomain: false, scheduler });
    streams.health$.subscribe().add(streams.awaited$.subscribe());
    return { ...streams, members$, termination$ };
  }

  it('has the health of the components of its workers that serve and answer, and is unhealthy without any, or when it ends', () => {
    const { health$, members$, termination$ } = instanceOf(true);
    const bad = worker(true, ['counter store']);
    function unhealthyWith(...members: (typeof members$)['value']) {
      members$.next(members);
      return health$.value.unhealthy;
    }
    expect(unhealthyWith(bad, worker(true), bad)).toEqual(['counter store']);
    expect(unhealthyWith(worker(true), worker(false, ['counter store']))).toEqual([]);
    expect(unhealthyWith(worker(false))).toEqual(['workers']);
    expect(unhealthyWith({ ...worker(true), isResponsive: false }, worker(true))).toEqual([]);
    expect(unhealthyWith({ ...worker(true), isResponsive: false })).toEqual(['workers']);
    termination$.next('SIGTERM');
    expect(unhealthyWith(worker(true))).toEqual(['termination']);
  });

  it('waits for what its workers wait for, for its workers, and for the rules', () => {
    const { awaited$, members$ } = instanceOf(true);
    members$.next([worker(false, [], ['counter store']), worker(false)]);
    expect(awaited$.value).toEqual(['counter store']);
    members$.next([worker(false), worker(true)]);
    expect(awaited$.value).toEqual(['workers']);
    members$.next([worker(true), worker(true)]);
    expect([awaited$.value, instanceOf(false).awaited$.value]).toEqual([[], ['rules']]);
  });

  it('is unhealthy in a worker before its drain begins when the primary is gone', async () => {
    const [own, others] = duplexPair();
    const link = new PrimaryLink(own);
    const healthAtDrain: unknown[] = [];
    link.health$.subscribe();
    link.drain$.subscribe(() => healthAtDrain.push(link.health$.value));
    link.start();
    sendJson(new StreamChannel(others), TOPICS.health, GOOD);
    await until('the worker is informed', () => link.health$.value.healthy);
    own.destroy();
    await until('the drain begins', () => healthAtDrain.length > 0);
    expect(healthAtDrain).toEqual([{ healthy: false, unhealthy: ['termination'] }]);
  });
});
