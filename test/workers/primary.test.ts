import childProcess, { ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  BehaviorSubject,
  EMPTY,
  NEVER,
  type SchedulerLike,
  Subject,
  VirtualTimeScheduler,
  firstValueFrom,
  merge,
  of,
  toArray,
} from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { Channel } from '../../src/workers/channel';
import { WorkerConnections } from '../../src/workers/connections';
import { ConnectionDispatch, type ConnectionDispatchOptions, leastLoaded } from '../../src/workers/dispatch';
import { instanceOfWorkers } from '../../src/workers/instance';
import type { Awaited } from '../../src/streams/readiness';
import { WorkerPool } from '../../src/workers/pool';
import { PrimaryLink } from '../../src/workers/primary-link';
import { type Order, type Report, type WorkerExit, WorkerProcess, type WorkerState } from '../../src/workers/process';
import { workerArguments, workerExecArguments, workerNumber } from '../../src/workers/role';
import { RecordedLog } from '../support/data/recorded-log';
import { until } from '../support/waiting/until';
import { duplexPair } from '../support/workers/channel-pair';

/** A worker that does what the test says. Records its orders, and the sockets that it gets. */
class FakeWorker {
  readonly reports$ = new Subject<Report>();
  readonly exited$ = new Subject<WorkerExit>();
  readonly drained$ = new Subject<null>();
  readonly startedAt = performance.now();
  isServing = false;
  isResponsive = true;
  isRecorded = false;
  /** Whether it answers requests that show whether it does. */
  isAlive = true;
  readonly received: string[] = [];
  readonly sockets: Socket[] = [];
  readonly channel = {
    start: () => void this.received.push('start'),
    request: () => (this.isAlive ? of(null) : NEVER),
  };
  readonly connections: WorkerConnections;
  /** Sends what the worker reports about its sockets. */
  notice: (notice: { readonly taken: number } | { readonly closed: number }) => void = () => undefined;

  constructor(readonly number: number) {
    this.connections = new WorkerConnections({
      send: (_: unknown, socket: Socket) => this.sockets.push(socket) > 0,
      on: (_: string, listener: (notice: unknown) => void) => (this.notice = listener),
    } as never);
  }

  order = ({ kind }: Order) => void this.received.push(kind);
  kill = () => void this.received.push('kill');

  /** Of the methods that others call, only `drain` is used here. */
  call(method: string): Promise<readonly unknown[]> {
    this.received.push(method);
    return firstValueFrom(merge(this.drained$, this.exited$).pipe(toArray()));
  }

  serves(): void {
    this.reports$.next({ kind: 'serving', store: 'memory' });
  }

  ends(exit: Partial<WorkerExit>): void {
    this.exited$.next({ code: null, signal: null, ...exit });
    this.exited$.complete();
    this.drained$.complete();
  }
}

function passTime(scheduler: VirtualTimeScheduler, milliseconds: number): void {
  scheduler.maxFrames = scheduler.now() + milliseconds;
  // So that time also passes when nothing else happens.
  scheduler.schedule(() => undefined, milliseconds);
  scheduler.flush();
}

describe('the pool of workers', () => {
  const KILLED = { signal: 'SIGKILL' } as const;
  const LOST = 'a worker has ended while it drained; its calls have failed';
  const REPLACED = 'a worker has ended; its calls have failed, and it is replaced';

  /** A pool that has started two workers, in virtual time. */
  function startPool({ areServing = false } = {}) {
    const log = new RecordedLog();
    const workers: FakeWorker[] = [];
    const failing = { starts: 0 };
    const scheduler = new VirtualTimeScheduler();
    const pool = new WorkerPool({
      count: 2,
      fork: (number) => {
        if ((failing.starts -= 1) >= 0) throw new Error('too many open files');
        return workers[workers.push(new FakeWorker(number)) - 1] as unknown as WorkerProcess;
      },
      log,
      scheduler,
    });
    const running = pool.running$.subscribe();
    if (areServing) for (const worker of workers) worker.serves();
    function pass(milliseconds: number): void {
      passTime(scheduler, milliseconds);
    }
    return { pool, running, log, failing, pass, workers: workers as [FakeWorker, FakeWorker, ...FakeWorker[]] };
  }

  /** Drains a pool until its workers have ended. */
  function drain(pool: WorkerPool): { isOver: boolean } {
    const progress = { isOver: false };
    void pool
      .drain(9_500)
      .then(() => pool.finish())
      .then(() => (progress.isOver = true));
    return progress;
  }

  it('gives others the connections of a worker that is silent for ten seconds, and kills it after a minute', () => {
    const { pool, log, workers, pass } = startPool({ areServing: true });
    function states() {
      return pool.workers.map(({ isResponsive }) => isResponsive);
    }
    workers[0].isAlive = false;
    pass(10_000);
    expect(states()).toEqual([true, true]);
    pass(1_000);
    expect(states()).toEqual([false, true]);
    workers[0].reports$.next({ kind: 'state', state: { isStoreReady: true, isStoreConnected: true } });
    expect(states()).toEqual([true, true]);
    pass(60_000);
    expect(workers[0].received).not.toContain('kill');
    pass(1_000);
    expect(workers.map(({ received }) => received)).toEqual([['start', 'kill'], ['start']]);
    const silent = 'a worker does not answer; others get the new connections';
    expect(log.messages).toEqual([silent, 'a worker answers again', silent, 'a worker does not answer and is killed']);
    expect(log.lines.at(-1)?.fields).toEqual({ worker: 1, reason: 'it has not answered for 60000 ms' });
  });

  it('kills a worker that does not answer while a heap snapshot of it is taken only after ten minutes', () => {
    const { workers, pass } = startPool({ areServing: true });
    for (const worker of workers) Object.assign(worker, { isAlive: false, isRecorded: true });
    pass(599_000);
    workers[1].isRecorded = false;
    pass(1_000);
    expect(workers.map(({ received }) => received)).toEqual([['start'], ['start', 'kill']]);
    pass(1_000);
    expect(workers.map(({ received }) => received)).toEqual(Array(2).fill(['start', 'kill']));
  });

  it('kills a worker that stands still before it serves, without a line before', () => {
    const { log, workers, pass } = startPool();
    for (const worker of workers) worker.isAlive = false;
    pass(61_000);
    expect(workers.map(({ received }) => received)).toEqual(Array(2).fill(['start', 'kill']));
    expect(log.messages).toEqual(Array(2).fill('a worker does not answer and is killed'));
  });

  it('gives an order that it announces to all workers, and the last one of its kind to those that start later', () => {
    const { pool, workers, pass } = startPool({ areServing: true });
    for (let time = 0; time < 2; time += 1) pool.announce({ kind: 'health', health: { healthy: true, unhealthy: [] } });
    workers[0].ends(KILLED);
    pass(100);
    expect(workers.map(({ received }) => received)).toEqual([
      ['start', 'health', 'health'],
      ['start', 'health', 'health'],
      ['health', 'start'],
    ]);
  });

  it('replaces a worker that ends, also when it cannot be started at first, until the drain begins', () => {
    const { pool, log, failing, workers, pass } = startPool({ areServing: true });
    failing.starts = 1;
    workers[0].ends(KILLED);
    pass(60_000);
    expect(workers.map(({ number }) => number)).toEqual([1, 2, 1]);
    workers[2]?.ends(KILLED);
    pool.stopReplacing();
    workers[1].ends(KILLED);
    pass(60_000);
    expect([workers.length, pool.hasLostCalls]).toEqual([3, true]);
    expect(log.messages).toEqual([REPLACED, REPLACED, REPLACED, LOST]);
  });

  it('drains until all workers have ended, and has lost calls if the exit code of one is not 0', async () => {
    const { pool, log, workers, running } = startPool({ areServing: true });
    const progress = drain(pool);
    workers[1].drained$.next(null);
    workers[1].ends({ code: 0 });
    await nextTurn();
    expect([progress.isOver, pool.hasLostCalls]).toEqual([false, false]);
    workers[0].ends({ code: 1 });
    await nextTurn();
    expect(workers[1].received).toEqual(['start', 'drain']);
    const fields = { worker: 1, reason: 'exit code 1' };
    expect([progress.isOver, pool.hasLostCalls]).toEqual([true, true]);
    running.unsubscribe();
    expect(log.lines).toEqual([{ level: 'error', message: LOST, fields }]);
  });

  it('kills in a drain the workers that do not serve yet, which have no calls to lose', async () => {
    const { pool, log, workers, running } = startPool();
    const progress = drain(pool);
    // It was about to serve when it was killed.
    workers[0].serves();
    for (const worker of workers) worker.ends(KILLED);
    await nextTurn();
    for (const { received } of workers) expect(received).toEqual(['start', 'kill', 'drain']);
    running.unsubscribe();
    expect([progress.isOver, pool.hasLostCalls, log.lines]).toEqual([true, false, []]);
  });

  it('waits from 100 ms to 10 s, twice as long each time, until a worker has lived for a minute', () => {
    const { log, workers, pass } = startPool({ areServing: true });
    function endAfter(milliseconds: number): unknown {
      pass(milliseconds);
      workers.at(-1)!.ends(KILLED);
      pass(10_000);
      workers.at(-1)!.serves();
      return log.lines.findLast(({ fields }) => fields?.['in'] !== undefined)?.fields?.['in'];
    }
    const delays = Array.from({ length: 9 }, () => endAfter(49_000));
    const expected = [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000];
    expect(delays).toEqual(expected.map((milliseconds) => `${milliseconds}ms`));
    expect([endAfter(70_000), endAfter(0)]).toEqual(['100ms', '200ms']);
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
  ])('has the arguments of the primary, with a port of its own for the inspector: %s', (text, own) => {
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
    type Load = readonly [grpc: number, http: number, isResponsive?: false | undefined, inTransit?: number];
    function chosen(...workers: readonly Load[]) {
      const loaded = workers.map(([grpc, http, isResponsive = true, moving = 0]) => {
        const inTransit = { grpc: moving, http: 0 };
        return { connections: { load: { grpc, http }, inTransit }, isServing: true, isResponsive };
      });
      return loaded.findIndex((worker) => worker === leastLoaded(loaded, 'grpc'));
    }
    expect([chosen([2, 0], [1, 9]), chosen([1, 5], [1, 2], [2, 0]), chosen([1, 1], [1, 1])]).toEqual([1, 1, 0]);
    expect([chosen([0, 0, false], [3, 0]), chosen([1, 0, false], [0, 0, false]), chosen()]).toEqual([1, 1, -1]);
    // A worker has room for those on their way to it.
    expect([chosen([20, 0, undefined, 16], [30, 0]), chosen([20, 0, undefined, 15], [30, 0])]).toEqual([1, 0]);
  });

  /** A dispatch to the workers of a pool, and the connections that it has refused or could not give to one. */
  function dispatching(maxConnections: ConnectionDispatchOptions['maxConnections'], scheduler?: SchedulerLike) {
    const refused: unknown[] = [];
    const unavailable: Socket[] = [];
    const pool = { serving$: new Subject<WorkerProcess>(), workers: [] as WorkerProcess[] };
    function adopt(socket: Socket): void {
      unavailable.push(socket);
    }
    const dispatch = new ConnectionDispatch({
      ...{ pool, maxConnections, ...(scheduler && { scheduler }) },
      onRefused: (...[listener, bound]) => void refused.push([listener, bound]),
      onReset: () => undefined,
      unavailable: { adopt, close: () => Promise.resolve(), abort: () => undefined },
      onError: () => undefined,
    });
    function serve(...workers: readonly FakeWorker[]): void {
      for (const worker of workers) worker.isServing = true;
      pool.workers = [...workers] as unknown as WorkerProcess[];
      for (const worker of pool.workers) pool.serving$.next(worker);
    }
    return { pool, refused, unavailable, dispatch, serve };
  }

  /** A dispatch to one worker that serves. */
  function dispatchToOne(maxConnections: ConnectionDispatchOptions['maxConnections']) {
    const worker = new FakeWorker(1);
    const made = dispatching(maxConnections);
    made.serve(worker);
    return { worker, ...made };
  }

  /** Connections of a peer. */
  function socketsOf(address: string, count: number): readonly Socket[] {
    return Array.from({ length: count }, () =>
      Object.defineProperty(new Socket(), 'remoteAddress', { value: address, configurable: true }),
    );
  }

  it('waits while 16 of its listener are on their way to the worker, up to the limits of both listeners', async () => {
    const { worker, refused, dispatch } = dispatchToOne({ grpc: 2_000, http: 10 });
    const sockets = socketsOf('10.0.0.1', 2_001 + 27);
    const [grpc, http] = [sockets.slice(0, 2_001), sockets.slice(2_001)];
    for (const socket of grpc) dispatch.accepted('grpc', socket);
    expect([worker.sockets, refused, dispatch.count('grpc')]).toEqual([
      grpc.slice(0, 16),
      [['grpc', 'hand_over']],
      2_000,
    ]);
    expect(grpc.map(({ destroyed }) => destroyed).lastIndexOf(false)).toBe(1_999);
    for (const socket of http) dispatch.accepted('http', socket);
    expect([worker.sockets.slice(16), refused.slice(1)]).toEqual([http.slice(0, 16), [['http', 'hand_over']]]);
    worker.notice({ taken: 1 });
    expect(worker.sockets.slice(32)).toEqual([grpc[16]]);
    // Those that wait are not served any more when the listener is closed.
    void dispatch.stop('grpc');
    expect(grpc.filter(({ destroyed }) => !destroyed)).toEqual(grpc.slice(1, 17));
    await dispatch.close();
    for (const socket of sockets) socket.destroy();
  });

  it('waits for one turn of the other peers, and takes the place of one of the peer with the most at the limit', async () => {
    const { worker, refused, dispatch } = dispatchToOne({ grpc: 100, http: 10 });
    const storm = socketsOf('10.0.0.1', 100);
    for (const socket of storm) dispatch.accepted('grpc', socket);
    // One network of IPv6, one address of IPv4 as it is written for both families, and Unix sockets.
    const others = ['2001:db8::1', '2001:db8::ffff:1', '10.0.0.2', '::ffff:10.0.0.2', '::1'].flatMap((address) => [
      ...socketsOf(address, 1),
    ]);
    for (const socket of others) dispatch.accepted('grpc', socket);
    expect(refused).toEqual(Array(5).fill(['grpc', 'hand_over']));
    // The oldest that waited.
    expect(storm.filter(({ destroyed }) => destroyed)).toEqual(storm.slice(16, 21));
    const [first, sameNetwork, second, sameAddress, third] = others;
    for (let id = 1; id <= 7; id += 1) worker.notice({ taken: id });
    expect(worker.sockets.slice(16)).toEqual([storm[21], first, second, third, storm[22], sameNetwork, sameAddress]);
    for (const socket of [...storm, ...others]) socket.destroy();
    await dispatch.close();
  });

  it('is refused for the connections that are open when none waits', async () => {
    const { refused, dispatch } = dispatchToOne({ grpc: 16, http: 10 });
    const sockets = socketsOf('10.0.0.1', 17);
    for (const socket of sockets) dispatch.accepted('grpc', socket);
    expect(refused).toEqual([['grpc', 'connections']]);
    for (const socket of sockets) socket.destroy();
    await dispatch.close();
  });

  it('waits for the first worker if it is of gRPC, passes to others until it is taken, and counts until its end', async () => {
    const scheduler = new VirtualTimeScheduler();
    const { pool, unavailable, dispatch, serve } = dispatching({ grpc: 2, http: 10 }, scheduler);
    const workers = [new FakeWorker(1), new FakeWorker(2)] as [FakeWorker, FakeWorker];
    const [one, other] = workers;
    for (const worker of workers) worker.exited$.subscribe(() => pool.workers.shift());
    const sockets = Array.from({ length: 6 }, () => new Socket());
    const [first, second, third, fourth, http, late] = sockets as [Socket, Socket, Socket, Socket, Socket, Socket];
    for (const socket of [first, second, third]) dispatch.accepted('grpc', socket);
    dispatch.accepted('http', http);
    expect([third.destroyed, unavailable]).toEqual([true, [http]]);
    serve(...workers);
    expect([one.sockets, other.sockets]).toEqual([[first], [second]]);
    one.notice({ closed: 1 });
    dispatch.accepted('grpc', fourth);
    other.notice({ taken: 1 });
    expect([second.destroyed, fourth.destroyed, dispatch.count('grpc')]).toEqual([true, false, 2]);
    one.ends({ signal: 'SIGKILL' });
    expect([other.sockets, dispatch.count('grpc')]).toEqual([[second, fourth], 2]);
    other.notice({ closed: 1 });
    let settled = 0;
    void dispatch.stop('grpc').then(() => (settled += 1));
    other.notice({ taken: 2 });
    await until('it is settled', () => settled === 1);
    other.notice({ closed: 2 });
    expect([fourth.destroyed, dispatch.count('grpc')]).toEqual([true, 0]);
    // A worker that hangs does not keep the others from draining.
    dispatch.accepted('grpc', late);
    async function pass(milliseconds: number): Promise<void> {
      passTime(scheduler, milliseconds);
      await nextTurn();
    }
    void dispatch.stop('grpc').then(() => (settled += 1));
    await pass(999);
    expect(settled).toBe(1);
    await pass(1);
    expect(settled).toBe(2);
    // It is closed when it has waited a second for another one.
    other.ends({ signal: 'SIGKILL' });
    await pass(999);
    expect([late.destroyed, dispatch.count('grpc')]).toEqual([false, 1]);
    await pass(1);
    expect([late.destroyed, dispatch.count('grpc')]).toEqual([true, 0]);
    for (const socket of sockets) socket.destroy();
    await dispatch.close();
  });
});

describe('an instance', () => {
  const GOOD = { healthy: true, unhealthy: [] };

  const STORE: WorkerState = { isStoreReady: true, isStoreConnected: true };

  function worker(isServing: boolean, state: Partial<WorkerState> = {}, isResponsive = true) {
    return { isReady: isServing && isResponsive, state: { ...STORE, ...state } };
  }

  function instanceOf(startsWithoutRules: boolean) {
    const workers$ = new BehaviorSubject([worker(true), worker(true)]);
    const [termination$, complete$] = [new Subject<unknown>(), new Subject<unknown>()];
    const sources = { rules$: startsWithoutRules ? EMPTY : NEVER, workers$, complete$, termination$ };
    const scheduler = new TestScheduler(() => undefined);
    const { readiness } = instanceOfWorkers(sources, { startsWithoutRules, needsDomain: false, scheduler });
    const { health$, awaited$ } = readiness;
    let awaited: readonly Awaited[] | undefined;
    health$.subscribe().add(awaited$.subscribe((items) => (awaited = items)));
    return { health$, awaited: () => awaited, workers$, termination$, complete$ };
  }

  it('has the health of its workers that serve and answer, and is unhealthy without any, or when it ends', () => {
    const { health$, workers$, termination$ } = instanceOf(true);
    const bad = worker(true, { isStoreConnected: false });
    function unhealthyWith(...members: (typeof workers$)['value']) {
      workers$.next(members);
      return health$.value.unhealthy;
    }
    expect(unhealthyWith(bad, worker(true), bad)).toEqual(['counter store']);
    expect(unhealthyWith(worker(true), worker(false, { isStoreConnected: false }))).toEqual([]);
    expect(unhealthyWith(worker(false))).toEqual(['workers']);
    expect(unhealthyWith(worker(true, {}, false), worker(true))).toEqual([]);
    expect(unhealthyWith(worker(true, {}, false))).toEqual(['workers']);
    termination$.next('SIGTERM');
    expect(unhealthyWith(worker(true))).toEqual(['termination']);
  });

  it('waits for the store of its workers, for its workers, and for the rules', () => {
    const { awaited, workers$, complete$ } = instanceOf(true);
    workers$.next([worker(false, { isStoreReady: false }), worker(false)]);
    expect(awaited()).toEqual(['counter store']);
    workers$.next([worker(false), worker(true)]);
    expect(awaited()).toEqual(['workers']);
    complete$.next(undefined);
    expect([awaited(), instanceOf(false).awaited()]).toEqual([[], ['rules']]);
  });

  it('is unhealthy in a worker before its drain begins when the primary is gone', async () => {
    const [own, others] = duplexPair();
    const link = new PrimaryLink(own);
    const healthAtDrain: unknown[] = [];
    link.health$.subscribe();
    link.orders('drain').subscribe(() => healthAtDrain.push(link.health$.value));
    link.channel.start();
    new Channel(others).notify('order', { kind: 'health', health: GOOD } satisfies Order);
    await until('the worker is informed', () => link.health$.value.healthy);
    own.destroy();
    await until('the drain begins', () => healthAtDrain.length > 0);
    expect(healthAtDrain).toEqual([{ healthy: false, unhealthy: ['termination'] }]);
  });
});
