import type { AddressInfo } from 'node:net';
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
  tap,
  timer,
} from 'rxjs';
import { VERSION } from '../version';
import { signals } from '../sources/signals';
import type { LoadedConfig } from '../streams/config';
import {
  type AbortReason,
  type Connections,
  type DrainOutcome,
  type DrainStep,
  LEAST_DRAIN,
  STOP_TIME,
  drain,
  shutdownDelay,
} from '../streams/drain';
import type { Log } from '../log/log';
import type { Phase, Readiness } from '../streams/readiness';
import { formatHostPort } from '../text/host-port';
import { asError } from '../text/thrown';
import type { App } from './app';
import { IGNORED_SIGNALS } from './early';
import { type ManagerNotifier, managerReports } from './service-manager';

/** Signals that are typed at a terminal, after which no caller is waited for. */
const TYPED: ReadonlySet<string> = new Set(['SIGINT', 'SIGQUIT']);

/** Where a listener listens: an address and a port, or the path of a Unix socket. */
export type ListenerAddress = AddressInfo | string;

/** What the service serves, and where. */
export interface Serving {
  readonly grpc: ListenerAddress;
  readonly http: ListenerAddress;
  readonly debug: ListenerAddress;
  /** Undefined without a page for Prometheus. */
  readonly metrics: ListenerAddress | undefined;
  /** The kind and the addresses of the counter store, without credentials. */
  readonly store: string;
  /** The active rules; undefined when the service was started without. */
  readonly rules: LoadedConfig | undefined;
}

/** How the process that others see is run: by its service manager, and by a program that imports it. */
export interface RunOptions {
  readonly notifier: ManagerNotifier;
  /** Called when the listeners are open. */
  readonly onServing: (serving: Serving) => void;
  /** Called when the drain is aborted, so that connections and files may still be in use. */
  readonly onAborted: () => void;
}

export interface LifeOptions extends RunOptions {
  /** The signals that end the process, also those before a subscription, shared. */
  readonly signal$: Observable<NodeJS.Signals>;
  readonly readiness: Readiness;
  /** Opens the listeners for decisions, when the service is ready. */
  readonly open: () => Promise<Serving>;
  /** The connections of the listeners for decisions. */
  readonly connections: () => Connections;
  /** What ends when the service drains, in this order. */
  readonly drainSteps: readonly DrainStep[];
  /** Whether calls have failed during the drain, although its steps have ended. */
  readonly hasLostCalls?: () => boolean;
}

/**
 * The life of the service as seen from outside: opens the listeners when it is ready, drains after the first signal and
 * the shutdown delay, and logs each step.
 *
 * @returns the exit code, when the process may end
 * @throws what prevents the service from running
 */
export async function lifeOf(
  { settings, manager, log }: Pick<App, 'settings' | 'manager'> & { readonly log: Log },
  options: LifeOptions,
): Promise<0 | 1> {
  const { shutdownDelay: longestDelay } = settings;
  const { signal$, readiness, open, onServing, onAborted, notifier, connections, drainSteps } = options;
  const life = new LifeLog(log);
  const subscriptions = new Subscription();
  const serving$ = defer(async () => {
    const serving = await open();
    readiness.opened();
    life.serving(serving);
    onServing(serving);
  });
  subscriptions.add(signal$.pipe(take(1)).subscribe((signal) => life.signalled(signal)));
  subscriptions.add(readiness.logAwaited(log, asyncScheduler).pipe(takeUntil(signal$)).subscribe());
  subscriptions.add(logIgnoredSignals(log));
  const drainTime = Math.max(longestDelay + LEAST_DRAIN, STOP_TIME);
  const reports =
    notifier && managerReports(notifier, { readiness, signal$, drainTime, watchdog: manager.watchdog, log });
  subscriptions.add(reports?.reports$.subscribe());
  const drainBegins$ = new Subject<void>();
  const drained$ = defer(() => {
    drainBegins$.next();
    // Without listeners there are no callers to give time to.
    const delay = readiness.hasOpened && !TYPED.has(life.signal) ? longestDelay : 0;
    if (delay > 0) life.leaving(delay);
    return drain({
      steps: [...drainSteps, ...(reports ? [{ name: 'service manager', run: () => reports.stopReported$ }] : [])],
      delay$: delay === 0 ? EMPTY : shutdownDelay(delay, connections, asyncScheduler),
      onBegin: () => life.draining(),
      signal$: signal$.pipe(skip(1)),
      deadline: STOP_TIME,
      scheduler: asyncScheduler,
      onFailure: (step, error) => logFailedStep(log, step, error),
    });
  });
  const outcome$ = merge(
    runPhases(readiness.phase$, serving$, drained$),
    neverOpened(signal$).pipe(takeUntil(drainBegins$)),
  ).pipe(
    take(1),
    finalize(() => subscriptions.unsubscribe()),
  );
  const outcome = await lastValueFrom(outcome$);
  if (outcome.kind === 'aborted') onAborted();
  return life.drained(outcome, options.hasLostCalls?.() === true);
}

/** What a process does, once its parts are there. */
export interface RunningProcess {
  readonly readiness: Readiness;
  /** The streams of the process. None fails. */
  readonly flows: readonly Observable<unknown>[];
  /**
   * Opens the listeners for decisions when the process is ready, and drains it when it has to end. Resolves to the exit
   * code.
   */
  readonly live: () => Promise<0 | 1>;
}

/**
 * Subscribes to the streams of a process while it lives. Until then, a second signal ends it, should the address of a
 * listener not be found.
 *
 * @returns the exit code, when the process may end
 * @throws what prevents it from running
 */
export async function runProcess(app: App, { readiness, flows, live }: RunningProcess): Promise<0 | 1> {
  const watch$ = readiness.opened$.pipe(tap(app.watchLoop));
  const flow = merge(...flows, watch$).subscribe();
  try {
    return await live();
  } finally {
    flow.unsubscribe();
  }
}

function logIgnoredSignals(log: Log): Subscription {
  return signals(IGNORED_SIGNALS).subscribe((signal) => {
    log.warn('signal ignored: it has no meaning for weir', { signal });
  });
}

/** What a process does in each phase: `serving$` opens its listeners, `drained$` ends it. */
export function runPhases(
  phase$: Observable<Phase>,
  serving$: Observable<unknown>,
  drained$: Observable<DrainOutcome>,
): Observable<DrainOutcome> {
  return phase$.pipe(
    concatMap((phase): Observable<DrainOutcome> => {
      if (phase === 'serving') return serving$.pipe(ignoreElements());
      return phase === 'draining' ? drained$ : EMPTY;
    }),
  );
}

export function logFailedStep(log: Log, step: string, error: unknown): void {
  log.error(`failed to drain ${step}`, { error: asError(error) });
}

/** The drain begins when the listeners are open; to open them may wait for a file or a name server without end. */
function neverOpened(signal$: LifeOptions['signal$']): Observable<DrainOutcome> {
  return signal$.pipe(
    take(1),
    switchMap(() =>
      merge(
        signal$.pipe(
          skip(1),
          map((): AbortReason => 'second signal'),
        ),
        timer(STOP_TIME).pipe(map((): AbortReason => 'deadline')),
      ),
    ),
    map((why) => ({ kind: 'aborted', why, step: 'opening the listeners' })),
  );
}

/** Logs the life of the service: that it serves, that it stops, and how it has stopped. */
class LifeLog {
  readonly #log: Log;
  #drainBegan = NaN;
  /** The first termination signal. */
  signal = '';

  constructor(log: Log) {
    this.#log = log;
  }

  serving({ grpc, http, debug, metrics, store, rules }: Serving): void {
    this.#log.notice('serving', {
      version: VERSION,
      grpc: nameOf(grpc),
      http: nameOf(http),
      debug: nameOf(debug),
      metrics: metrics && nameOf(metrics),
      store,
      source: rules?.origin.source ?? 'none: no rules are loaded yet',
      domains: rules?.ruleset.domains.size ?? 0,
      rules: rules?.ruleset.size ?? 0,
    });
  }

  /** The lines that follow name the signal. */
  signalled(signal: string): void {
    this.signal = signal;
    this.#drainBegan = performance.now();
  }

  /** @param delay milliseconds until the drain */
  leaving(delay: number): void {
    this.#drainBegan = performance.now();
    const fields = { signal: this.signal, delay: formatMilliseconds(delay) };
    this.#log.notice('unhealthy from now on; calls are served until the drain', fields);
  }

  draining(): void {
    this.#drainBegan = performance.now();
    this.#log.notice('draining: no new calls are accepted, those in flight finish', { signal: this.signal });
  }

  /** @returns the exit code of the process */
  drained(outcome: DrainOutcome, hasLostCalls: boolean): 0 | 1 {
    const duration = formatMilliseconds(performance.now() - this.#drainBegan);
    if (outcome.kind === 'drained' && !hasLostCalls) {
      this.#log.notice('drained; the process exits', { duration, exit_code: 0 });
      return 0;
    }
    const message =
      outcome.kind === 'drained'
        ? 'drained, but calls have failed; the process exits'
        : `drain aborted by ${outcome.why}; still in flight: ${outcome.step}`;
    this.#log.error(message, { duration, exit_code: 1 });
    return 1;
  }
}

function formatMilliseconds(milliseconds: number): string {
  return `${Math.round(milliseconds)}ms`;
}

function nameOf(at: ListenerAddress): string {
  return typeof at === 'string' ? at : formatHostPort(at.address, at.port);
}
