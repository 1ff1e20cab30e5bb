import { BehaviorSubject, EMPTY, NEVER, ReplaySubject, Subject, of } from 'rxjs';
import { type Serving, lifeOf } from '../../src/main/life';
import { managerReports } from '../../src/main/service-manager';
import { readSettings } from '../../src/settings/read-settings';
import { STOP_TIME } from '../../src/streams/drain';
import { latest } from '../../src/streams/latest';
import { type Awaited, type Health, Readiness, STARTING } from '../../src/streams/readiness';
import { RecordedLog } from '../support/data/recorded-log';

const SERVING: Serving = {
  ...{ grpc: '/grpc', http: '/http', debug: '/debug', metrics: undefined, store: 'memory', rules: undefined },
};

beforeEach(() => void jest.useFakeTimers({ doNotFake: ['nextTick'] }));
afterEach(() => void jest.useRealTimers());

/** A service that is ready, and whose listeners open when the promise resolves. One caller is connected to it. */
function started(opened: Promise<Serving>, env: Readonly<Record<string, string>> = { SHUTDOWN_DELAY: '0' }) {
  const log = new RecordedLog();
  const signal$ = new ReplaySubject<NodeJS.Signals>(2);
  const awaited$ = latest(of<readonly Awaited[]>([]), []);
  const calls$ = new Subject<never>();
  const connections = { open: 1, accepted: 1 };
  const exitCode = lifeOf(
    { ...readSettings(env), log },
    {
      signal$,
      readiness: new Readiness({
        health$: latest(EMPTY, STARTING),
        awaited$,
        termination$: signal$,
        hasWorkers: false,
      }),
      open: () => opened,
      ...{ onServing: () => undefined, onAborted: () => undefined },
      notifier: undefined,
      connections: () => connections,
      drainSteps: [{ name: 'gRPC calls', run: () => calls$ }],
    },
  );
  return { log, signal$, exitCode, calls$, connections };
}

describe('the life of a service', () => {
  it('ends at the second signal, or when the time for a drain has passed, if the listeners do not open', async () => {
    const twice = started(new Promise(() => undefined));
    twice.signal$.next('SIGTERM');
    twice.signal$.next('SIGTERM');
    expect(await twice.exitCode).toBe(1);
    expect(twice.log.messages).toEqual(['drain aborted by second signal; still in flight: opening the listeners']);
    const { log, signal$, exitCode } = started(new Promise(() => undefined));
    await jest.advanceTimersByTimeAsync(STOP_TIME);
    signal$.next('SIGTERM');
    await jest.advanceTimersByTimeAsync(STOP_TIME - 1);
    expect(log.messages).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    expect(await exitCode).toBe(1);
    expect(log.messages).toEqual(['drain aborted by deadline; still in flight: opening the listeners']);
    expect(log.lines[0]?.fields).toEqual({ duration: expect.stringMatching(/^\d+ms$/), exit_code: 1 });
  });

  it('has the whole time for a drain if the listeners open after the signal', async () => {
    let open: (serving: Serving) => void = () => undefined;
    const { log, signal$, exitCode, calls$ } = started(new Promise((resolve) => (open = resolve)));
    signal$.next('SIGTERM');
    await jest.advanceTimersByTimeAsync(STOP_TIME - 1);
    open(SERVING);
    await jest.advanceTimersByTimeAsync(STOP_TIME - 1);
    calls$.complete();
    expect(await exitCode).toBe(0);
    const draining = 'draining: no new calls are accepted, those in flight finish';
    expect(log.messages).toEqual(['serving', draining, 'drained; the process exits']);
  });

  describe('with the default of SHUTDOWN_DELAY', () => {
    const leaving = 'unhealthy from now on; calls are served until the drain';
    const draining = 'draining: no new calls are accepted, those in flight finish';

    async function signalled(signal: NodeJS.Signals) {
      const life = started(Promise.resolve(SERVING), {});
      await jest.advanceTimersByTimeAsync(0);
      life.signal$.next(signal);
      return life;
    }

    it.each(['SIGTERM', 'SIGHUP', 'SIGPWR'] as const)(
      'drains five seconds after %s, and has ended after less than the ten that Docker waits',
      async (signal) => {
        const { log, exitCode } = await signalled(signal);
        await jest.advanceTimersByTimeAsync(4_999);
        expect(log.messages).toEqual(['serving', leaving]);
        await jest.advanceTimersByTimeAsync(1);
        expect(log.messages).toEqual(['serving', leaving, draining]);
        await jest.advanceTimersByTimeAsync(4_500);
        expect(await exitCode).toBe(1);
      },
    );

    it.each(['SIGINT', 'SIGQUIT'] as const)('drains at once after %s, which is typed', async (signal) => {
      const { log, exitCode, calls$ } = await signalled(signal);
      expect(log.messages).toEqual(['serving', draining]);
      calls$.complete();
      expect(await exitCode).toBe(0);
    });

    it('drains half a second after the last connection was closed', async () => {
      const { log, exitCode, calls$, connections } = await signalled('SIGTERM');
      await jest.advanceTimersByTimeAsync(1_000);
      connections.open = 0;
      await jest.advanceTimersByTimeAsync(1_000);
      expect(log.messages).toEqual(['serving', leaving, draining]);
      calls$.complete();
      expect(await exitCode).toBe(0);
    });
  });

  it('has a status that says what is awaited, and does not fail when that fails', () => {
    const awaited$ = new BehaviorSubject<readonly Awaited[]>(['counter store']);
    const readiness = new Readiness({
      awaited$: latest(awaited$, []),
      health$: latest(of<Health>({ healthy: true, unhealthy: [] }), STARTING),
      termination$: NEVER,
      hasWorkers: false,
    });
    const seen: string[] = [];
    // Without an observer for it, a failure would be thrown in a timer.
    readiness.status$.subscribe({ next: (status) => seen.push(status), error: () => seen.push('failed') });
    awaited$.next([]);
    awaited$.error(new Error('the store was not reached in time'));
    readiness.opened();
    const starting = ['starting: waiting for the counter store', 'starting: opening the listeners'];
    expect(seen).toEqual([...starting, 'serving']);
  });
});

/** Lets promises settle. */
function turn(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

/** The reports of a service that receives SIGTERM; `answers` are those of the manager to its messages, in order. */
async function reportsOfEnd(answers: readonly Promise<void>[]) {
  const sent: string[] = [];
  const log = new RecordedLog();
  const signal$ = new Subject<NodeJS.Signals>();
  const readiness = { status$: of('serving'), opened$: NEVER } as unknown as Readiness;
  const { reports$, stopReported$ } = managerReports(
    { send: ([line]) => answers[sent.push(line) - 1] as Promise<void> },
    { readiness, signal$, drainTime: 1_000, watchdog: undefined, log },
  );
  reports$.subscribe();
  signal$.next('SIGTERM');
  const end = { isReported: false };
  stopReported$.subscribe({ complete: () => (end.isReported = true) });
  await turn();
  return { sent, end, log };
}

describe('the reports to a service manager', () => {
  it('are complete when the manager cannot be notified', async () => {
    const { end, log } = await reportsOfEnd([Promise.resolve(), Promise.reject(new Error('connection refused'))]);
    await turn();
    expect([end.isReported, log.messages]).toEqual([true, ['cannot notify the service manager']]);
  });

  it('are given up five seconds after the drain', async () => {
    const { sent, end } = await reportsOfEnd([Promise.resolve(), new Promise(() => undefined)]);
    await turn();
    expect(sent).toContain('STOPPING=1');
    jest.advanceTimersByTime(4_999);
    expect(end.isReported).toBe(false);
    jest.advanceTimersByTime(1);
    expect(end.isReported).toBe(true);
  });
});
