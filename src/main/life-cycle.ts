import {
  EMPTY,
  type Observable,
  Subject,
  Subscription,
  asyncScheduler,
  concatMap,
  defer,
  finalize,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  skip,
  switchMap,
  take,
  takeUntil,
} from 'rxjs';
import { clockJumps } from '../sources/clock-jumps';
import type { LoadedSettings } from '../settings/read-settings';
import { signals } from '../sources/signals';
import { type DrainOutcome, type DrainStep, abortReasons, drain } from '../streams/drain';
import type { Log } from '../streams/ports/log';
import type { Service } from '../streams/service';
import { asError } from '../text/thrown';
import { IGNORED_SIGNALS } from './early-signals';
import { LifeLog, type Serving } from './life-log';
import type { Readiness } from './readiness';
import { type ManagerNotifier, managerReports } from './service-manager';

/** Milliseconds after which a drain is aborted. */
export const DRAIN_DEADLINE = 10_000;

export interface LifeCycleOptions {
  readonly phase$: Service['phase$'];
  /** The signals that end the process, also those before a subscription, shared. */
  readonly signal$: Observable<NodeJS.Signals>;
  readonly readiness: Readiness;
  /** Opens the listeners for decisions, when the service is ready. */
  readonly open: () => Promise<Serving>;
  /** Called when they are open. */
  readonly onServing: (serving: Serving) => void;
  readonly reading: LoadedSettings;
  readonly notifier: ManagerNotifier;
  /** What ends when the service drains, in this order. */
  readonly drainSteps: readonly DrainStep[];
  /** Whether calls have failed during the drain, although its steps have ended. */
  readonly hasLostCalls?: () => boolean;
  readonly log: Log;
}

/**
 * The life of the service as seen from outside: opens the listeners when it is ready, drains after the first signal and the
 * shutdown delay, and logs each step.
 *
 * @returns the exit code, when the process may end
 * @throws what prevents the service from running
 */
export async function lifeCycle({
  phase$,
  signal$,
  readiness,
  open,
  onServing,
  reading: {
    settings: { shutdownDelay },
    manager: { watchdog },
  },
  notifier,
  drainSteps: steps,
  hasLostCalls = () => false,
  log,
}: LifeCycleOptions): Promise<0 | 1> {
  const life = new LifeLog(log);
  const subscriptions = new Subscription();
  const serving$ = defer(async () => {
    const serving = await open();
    readiness.opened();
    life.serving(serving);
    onServing(serving);
  });
  subscriptions.add(clockJumps().subscribe((by) => life.clockJumped(by)));
  subscriptions.add(signal$.pipe(take(1)).subscribe((signal) => life.signalled(signal)));
  subscriptions.add(readiness.logAwaited(log).pipe(takeUntil(signal$)).subscribe());
  subscriptions.add(
    signals(IGNORED_SIGNALS).subscribe((signal) => log.warn('signal ignored: it has no meaning for weir', { signal })),
  );
  const drainTime = shutdownDelay + DRAIN_DEADLINE;
  const reports = notifier && managerReports(notifier, { readiness, signal$, drainTime, watchdog, log });
  subscriptions.add(reports?.reports$.subscribe());
  const drainBegins$ = new Subject<void>();
  const drained$ = defer(() => {
    drainBegins$.next();
    // Without listeners there are no callers to give time to.
    const delay = readiness.hasOpened ? shutdownDelay : 0;
    if (delay > 0) life.leaving(delay);
    return drain({
      steps: reports === undefined ? steps : [...steps, { name: 'service manager', run: () => reports.stopReported$ }],
      delay,
      onBegin: () => life.draining(),
      signal$: signal$.pipe(skip(1)),
      deadline: DRAIN_DEADLINE,
      scheduler: asyncScheduler,
      onFailure: (step, error) => log.error(`failed to drain ${step}`, { error: asError(error) }),
    });
  });
  const phases$ = phase$.pipe(
    concatMap((phase): Observable<DrainOutcome> => {
      if (phase === 'serving') return serving$.pipe(ignoreElements());
      return phase === 'draining' ? drained$ : EMPTY;
    }),
  );
  const outcome$ = merge(phases$, neverOpened(signal$).pipe(takeUntil(drainBegins$))).pipe(
    take(1),
    finalize(() => subscriptions.unsubscribe()),
  );
  return life.drained(await lastValueFrom(outcome$), hasLostCalls());
}

/** The drain begins when the listeners are open; to open them may wait for a file or a name server without end. */
function neverOpened(signal$: LifeCycleOptions['signal$']): Observable<DrainOutcome> {
  return signal$.pipe(
    take(1),
    switchMap(() => abortReasons(signal$.pipe(skip(1)), DRAIN_DEADLINE, asyncScheduler)),
    map((why) => ({ kind: 'aborted', why, step: 'opening the listeners' })),
  );
}
