import { BehaviorSubject, Subscription, noop } from 'rxjs';
import { type LoadedSettings, readSettings } from '../settings/read-settings';
import { secretsOf } from '../settings/secrets';
import { BoundedLines } from '../sinks/logs/bounded-lines';
import { type Logger, createLogger } from '../sinks/logs/logger';
import { rejectionWarnings } from '../sinks/logs/sampled-warnings';
import { standardStream } from '../sinks/text-outputs';
import { maskingReader } from '../sources/secret-files';
import { Statistics } from '../statistics/statistics';
import { SecretMask } from '../text/secret-mask';
import { asError } from '../text/thrown';
import { loopWatch } from './loop-watch';
import { collectOnOneThread } from './process';
import { startChecks } from './start-checks';

/** What every part of a process is made with. */
export interface App extends LoadedSettings {
  readonly log: Logger;
  /** Where the lines of the log go. */
  readonly lines: BoundedLines;
  readonly statistics: Statistics;
  /** Is called with each call that is rejected without a decision. */
  readonly onRejectedCall: ReturnType<typeof rejectionWarnings>;
  /**
   * Closes every listener that is still open when the service ends, because its drain was aborted or it could not
   * start, and ends the watch on the event loop.
   */
  readonly listeners: Subscription;
  /** How many instances share what is left of limits while the store does not count. */
  readonly instances$: BehaviorSubject<number>;
  /** Starts the watch on the event loop, unless it has begun. */
  readonly watchLoop: () => void;
}

/** How a process reports that it cannot run. */
export interface Failing {
  /** Where the lines of the log go. */
  readonly lines: BoundedLines;
  /** What hides the secrets in them. */
  readonly secrets: SecretMask;
  /** Undefined when the settings are invalid. */
  readonly app: App | undefined;
}

export interface ProcessOptions {
  /** The number of the worker that this process is, if it is one. */
  readonly worker?: number | undefined;
  /** Runs it; resolves to the exit code. */
  readonly run: (app: App) => Promise<0 | 1>;
  /** Reports what prevents it from running: a `SettingsError`, or what `run` has rejected with. */
  readonly failed: (error: unknown, failing: Failing) => void;
}

/** Reads the settings, opens the log and runs a process. Resolves to the exit code, when everything is written. */
export async function withApp(environment: NodeJS.ProcessEnv, { worker, run, failed }: ProcessOptions): Promise<0 | 1> {
  collectOnOneThread();
  const lines = new BoundedLines(standardStream(2));
  const secrets = new SecretMask(secretsOf(environment));
  let app: App | undefined;
  try {
    app = createApp(environment, { lines, secrets, worker });
    await forwardGrpcLibraryLogs(app);
    return await run(app);
  } catch (error) {
    failed(error, { lines, secrets, app });
    return 1;
  } finally {
    app?.listeners.unsubscribe();
    await lines.flush();
  }
}

/**
 * Reads the settings and opens the log, and from then on logs what is not caught anywhere.
 *
 * @throws SettingsError
 */
function createApp(
  environment: NodeJS.ProcessEnv,
  { lines, secrets, worker }: Omit<Failing, 'app'> & Pick<ProcessOptions, 'worker'>,
): App {
  // The primary has inspected what its workers use, too.
  const inspect = worker === undefined ? startChecks() : undefined;
  const reading = readSettings(environment, maskingReader(secrets), inspect);
  const { logLevel: level, logFormat: format } = reading.settings;
  const common = worker === undefined ? {} : { common: { worker } };
  const form = { format, mask: secrets.hide, ...common };
  const log = createLogger({ level, stream: lines, ...form });
  const { start: watchLoop, stop } = loopWatch({ ...reading, log, lines: form, isWorker: worker !== undefined });
  const app = { ...appOf(reading, log, lines), watchLoop };
  app.listeners.add(stop);
  const dropped = app.statistics.counter('ratelimit.log.dropped');
  lines.onDropped((count) => dropped.add(count));
  lines.onResumed((count) => {
    log.warn('log lines were dropped, because standard error was blocked, too slow or closed', { lines: count });
  });
  exitOnUncaught(log, lines);
  return app;
}

/** What every part is made with, by settings. */
export function appOf(reading: LoadedSettings, log: Logger, lines: BoundedLines): App {
  const statistics = new Statistics(reading.settings.statsMaxRuntimeKeys);
  const onRejectedCall = rejectionWarnings(log, Date.now);
  const share = reading.settings.storeFailureLocalShare;
  const instances$ = new BehaviorSubject(share === 'auto' ? 1 : share);
  const listeners = new Subscription();
  return { ...reading, log, lines, statistics, onRejectedCall, instances$, listeners, watchLoop: noop };
}

/**
 * Logs an exception that was not caught anywhere, also one of a promise, and ends the process with 1. Node would write
 * it in a format of its own and with the secrets in it, and end the process before the last lines of the log are
 * written.
 */
function exitOnUncaught(log: Logger, lines: BoundedLines): void {
  // Once: an exception that is thrown while the lines are written ends the process immediately.
  process.once('uncaughtException', (thrown: unknown) => {
    const error = asError(thrown);
    log.fatal('internal error; the process exits', { error, stack: error.stack });
    void lines.flush().then(() => process.exit(1));
  });
}

/**
 * Forwards what grpc-js logs under GRPC_VERBOSITY and GRPC_TRACE to the log, at debug level, if the settings make this
 * process use the library. By default grpc-js writes to standard error, which bypasses the level and format of the log
 * and the masking of secrets that servers quote.
 */
async function forwardGrpcLibraryLogs({ settings, log }: App): Promise<void> {
  const exports = settings.tracingEnabled && settings.tracingExporterProtocol === 'grpc';
  if (!exports && settings.configType === 'FILE') return;
  const { setLogger } = await import('@grpc/grpc-js');
  function forward(message: unknown): void {
    log.debug(`grpc-js: ${String(message)}`);
  }
  setLogger({ error: forward, info: forward, debug: forward });
}
