import { AsyncSubject, type Observable, asyncScheduler, concatMap, raceWith, timer } from 'rxjs';
import type { LoadedSettings } from '../settings/read-settings';
import { ConditionLog } from '../log/condition-log';
import { type Notifier, datagramNotifier, programNotifier } from '../sinks/service-manager';
import { STOPPING, notifications } from '../streams/notifications';
import type { Log } from '../log/log';
import { messageOf } from '../text/thrown';
import type { Readiness } from '../streams/readiness';

/** Milliseconds that the last lines of the log may take after a drain, and some more. */
const EXIT_TIME = 5_000;
/** Milliseconds that the last message may take: the program for it may be slow, or the manager may not read. */
const LAST_REPORT_TIMEOUT = 5_000;

/** How notifications reach the service manager that has started this process; undefined if it has not asked for any. */
export type ManagerNotifier = Notifier | undefined;

/**
 * Opens the way to the service manager: datagrams of this process, or the program `systemd-notify` if there is no
 * native package for them on this machine.
 *
 * @throws when the manager expects signs of life that only the native package can send
 */
export async function managerNotifier({ manager }: LoadedSettings): Promise<ManagerNotifier> {
  const { notifySocket: socket, watchdog } = manager;
  if (socket === undefined) return undefined;
  try {
    if (!socket.startsWith('/')) throw new Error(`${socket} is not a path`);
    return await datagramNotifier(socket);
  } catch (error) {
    if (watchdog === undefined) return programNotifier(socket);
    const [reason] = messageOf(error).split('\n');
    throw new Error(
      'WATCHDOG_USEC is set, but the watchdog cannot be notified: that needs the package ' +
        `node-unix-socket and a socket with a path (${reason}); install it with ` +
        'npm install --include=optional, or remove WatchdogSec= from the unit',
      { cause: error },
    );
  }
}

export interface NotifyOptions {
  readonly readiness: Readiness;
  readonly signal$: Observable<NodeJS.Signals>;
  /** Milliseconds from the first signal to the end of the drain, at most. */
  readonly drainTime: number;
  readonly watchdog: number | undefined;
  readonly log: Log;
}

/** How the life of the service is reported. */
export interface ManagerReports {
  /** Reports while subscribed to; never fails. Messages are sent in order, each after the one before. */
  readonly reports$: Observable<unknown>;
  /**
   * Completes when the manager knows that the service stops, or cannot be told; after {@link LAST_REPORT_TIMEOUT} at
   * the latest.
   */
  readonly stopReported$: Observable<unknown>;
}

export function managerReports(
  notifier: Notifier,
  { readiness, signal$, drainTime, watchdog, log }: NotifyOptions,
): ManagerReports {
  const failing = new ConditionLog(log, {
    begins: 'cannot notify the service manager',
    ends: 'the service manager is notified again',
  });
  const sources = { status$: readiness.status$, ready$: readiness.opened$, termination$: signal$ };
  const options = { watchdog, stopTimeout: drainTime + EXIT_TIME, scheduler: asyncScheduler };
  const stopReported$ = new AsyncSubject<never>();
  const reports$ = notifications(sources, options).pipe(
    concatMap(async (notification) => {
      try {
        await notifier.send(notification);
        failing.ended();
      } catch (error) {
        failing.because(messageOf(error));
      }
      if (notification[0] === STOPPING) stopReported$.complete();
    }),
  );
  return { reports$, stopReported$: stopReported$.pipe(raceWith(timer(LAST_REPORT_TIMEOUT))) };
}
