import type { LoadedSettings } from '../settings/read-settings';
import type { BoundedLines } from '../sinks/logs/bounded-lines';
import { type Logger, createLogger } from '../sinks/logs/logger';
import type { Statistics } from '../statistics/statistics';
import { asError } from '../text/thrown';

export interface ServiceLogOptions {
  /** Where the lines go. */
  readonly lines: BoundedLines;
  /** Replaces secrets in a text. */
  readonly mask: (text: string) => string;
  /** The number of the worker that writes the lines; undefined in other processes. */
  readonly worker?: number | undefined;
}

/** The log of the service, with a line when lines were dropped. */
export function serviceLog({ settings }: LoadedSettings, { lines, mask, worker }: ServiceLogOptions): Logger {
  const log = createLogger({
    level: settings.logLevel,
    format: settings.logFormat,
    stream: lines,
    mask,
    ...(worker !== undefined && { common: { worker } }),
  });
  lines.onResumed((dropped) => {
    log.warn('log lines were dropped, because standard error was blocked, too slow or closed', { lines: dropped });
  });
  return log;
}

/** Counts the lines that are dropped, also those of the time before. */
export function countDroppedLines(lines: BoundedLines, statistics: Statistics): void {
  const dropped = statistics.counter('ratelimit.log.dropped');
  lines.onDropped((count) => dropped.add(count));
}

/**
 * Logs an exception that was not caught anywhere, also one of a promise, and ends the process with 1. Node would write it in a
 * format of its own and with the secrets in it, and end the process before the last lines of the log are written.
 */
export function exitOnUncaught(log: Logger, lines: BoundedLines): void {
  // Once: an exception that is thrown while the lines are written ends the process immediately.
  process.once('uncaughtException', (thrown: unknown) => {
    const error = asError(thrown);
    log.fatal('internal error; the process exits', { error, stack: error.stack });
    void lines.flush().then(() => process.exit(1));
  });
}
