import { EMPTY, NEVER, ReplaySubject, Subject, of } from 'rxjs';
import { DRAIN_DEADLINE, lifeCycle } from '../../src/main/life-cycle';
import type { Serving } from '../../src/main/life-log';
import { Readiness } from '../../src/main/readiness';
import type { LoadedSettings } from '../../src/settings/read-settings';
import type { Awaited } from '../../src/streams/awaited';
import { STARTING } from '../../src/streams/health';
import { latest } from '../../src/streams/latest';
import { lifecycle } from '../../src/streams/lifecycle';
import { RecordedLog } from '../support/data/recorded-log';

const SERVING: Serving = {
  grpc: '/grpc',
  http: '/http',
  debug: '/debug',
  metrics: undefined,
  store: 'memory',
  rules: undefined,
};

// Only the timers: the service warns when the clock of the system and the monotonic one differ.
beforeEach(() => void jest.useFakeTimers({ doNotFake: ['Date', 'performance', 'hrtime'] }));
afterEach(() => void jest.useRealTimers());

/** A service that is ready, and whose listeners open when the promise resolves. */
function started(opened: Promise<Serving>) {
  const log = new RecordedLog();
  const signal$ = new ReplaySubject<NodeJS.Signals>(2);
  const awaited$ = latest<readonly Awaited[]>(NEVER, []);
  const readiness = new Readiness({ health$: latest(EMPTY, STARTING), awaited$ }, { hasWorkers: false });
  const calls$ = new Subject<never>();
  const exitCode = lifeCycle({
    phase$: lifecycle({ ready$: of(undefined), termination$: signal$ }),
    signal$,
    readiness,
    open: () => opened,
    onServing: () => undefined,
    reading: { settings: { shutdownDelay: 0 }, manager: { watchdog: undefined } } as unknown as LoadedSettings,
    notifier: undefined,
    drainSteps: [{ name: 'gRPC calls', run: () => calls$ }],
    log,
  });
  return { log, signal$, exitCode, calls$ };
}

describe('a service whose listeners never open', () => {
  it('ends at the second signal', async () => {
    const { log, signal$, exitCode } = started(new Promise(() => undefined));
    signal$.next('SIGTERM');
    signal$.next('SIGTERM');
    expect(await exitCode).toBe(1);
    expect(log.messages).toEqual(['drain aborted by second signal; still in flight: opening the listeners']);
  });

  it('ends when the time for a drain has passed since the first signal', async () => {
    const { log, signal$, exitCode } = started(new Promise(() => undefined));
    await jest.advanceTimersByTimeAsync(DRAIN_DEADLINE);
    signal$.next('SIGTERM');
    await jest.advanceTimersByTimeAsync(DRAIN_DEADLINE - 1);
    expect(log.messages).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    expect(await exitCode).toBe(1);
    expect(log.messages).toEqual(['drain aborted by deadline; still in flight: opening the listeners']);
    expect(log.lines[0]?.fields).toEqual({ duration: expect.stringMatching(/^\d+ms$/), exit_code: 1 });
  });
});

test('a service whose listeners open after the signal drains, and has the whole time for it', async () => {
  let open: (serving: Serving) => void = () => undefined;
  const { log, signal$, exitCode, calls$ } = started(new Promise((resolve) => (open = resolve)));
  signal$.next('SIGTERM');
  await jest.advanceTimersByTimeAsync(DRAIN_DEADLINE - 1);
  open(SERVING);
  await jest.advanceTimersByTimeAsync(DRAIN_DEADLINE - 1);
  calls$.complete();
  expect(await exitCode).toBe(0);
  expect(log.messages).toEqual([
    'serving',
    'draining: no new calls are accepted, those in flight finish',
    'drained; the process exits',
  ]);
});
