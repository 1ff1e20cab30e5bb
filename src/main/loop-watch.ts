import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { noop } from 'rxjs';
import { recordings } from '../http/debug/profiles';
import type { Log } from '../log/log';
import type { Settings } from '../settings/settings';
import { type LoggerOptions, createLogger } from '../sinks/logs/logger';
import { asError } from '../text/thrown';
import { isInspected } from './early';
import type { LoopThreadData } from './loop-thread';

/**
 * Milliseconds after which the thread is started at the latest. A start is over before, and the thread would take 20 ms
 * of CPU time from it.
 */
const LATEST_START = 1_000;
/** Milliseconds between two looks at the event loop, at most; for a short limit a fraction of it. */
const TICK = 1_000;
const TICKS_PER_LIMIT = 4;
/** Milliseconds after which a worker without a primary is killed when its event loop stands still. */
const ORPHAN_LIMIT = 5_000;
/** Milliseconds that the event loop may stand still for a heap snapshot: one of a heap of several GB takes minutes. */
const RECORDING_LIMIT = 600_000;

interface LoopWatchOptions {
  readonly settings: Pick<Settings, 'eventLoopTimeout'>;
  readonly log: Log;
  /** How lines of the log are made. */
  readonly lines: Omit<LoggerOptions, 'level' | 'stream'>;
  readonly isWorker: boolean;
}

/** The thread that watches the event loop of this process. */
export interface LoopWatch {
  /** Starts it, unless it runs. It starts by itself a second after it was made. */
  readonly start: () => void;
  readonly stop: () => void;
}

/**
 * A thread that kills this process when its event loop stands still for longer than the settings permit, and a worker
 * also when it stands still after the primary has ended. There is none where the loop may stand still for ever, or a
 * debugger may stop it.
 */
export function loopWatch({ settings, log, lines, isWorker }: LoopWatchOptions): LoopWatch {
  const timeout = settings.eventLoopTimeout || Infinity;
  if (isInspected || (timeout === Infinity && !isWorker)) return { start: noop, stop: noop };
  const tick = Math.min(TICK, timeout / TICKS_PER_LIMIT);
  const turns = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const data: LoopThreadData = {
    ...{ turns, recordings, tick },
    limit: timeout / tick,
    recordingLimit: RECORDING_LIMIT / tick,
    orphanLimit: Math.min(ORPHAN_LIMIT, timeout) / tick,
    primary: isWorker ? process.ppid : undefined,
    lines: {
      stalled: fatalLine(`the event loop has not turned for ${timeout / 1_000} s; the process is killed`, lines),
      orphaned: fatalLine('the primary is gone, and the event loop does not turn; the worker is killed', lines),
    },
  };
  const turning = setInterval(() => Atomics.add(turns, 0, 1), tick).unref();
  let thread: Worker | undefined;
  let hasStarted = false;
  function failed(thrown: unknown): void {
    clearInterval(turning);
    log.warn('the event loop is not watched: its thread has failed', { error: asError(thrown) });
  }
  function start(): void {
    if (hasStarted) return;
    hasStarted = true;
    try {
      // Without the options of this process, with which the thread would load modules that it does not need.
      thread = new Worker(join(__dirname, 'loop-thread.js'), { workerData: data, execArgv: [], env: {} });
      thread.on('error', failed).unref();
    } catch (error) {
      // The system does not permit another thread.
      failed(error);
    }
  }
  const late = setTimeout(start, LATEST_START).unref();
  function stop(): void {
    hasStarted = true;
    clearTimeout(late);
    clearInterval(turning);
    void thread?.terminate();
  }
  return { start, stop };
}

/** A line of the log. */
function fatalLine(message: string, options: LoopWatchOptions['lines']): string {
  let text = '';
  createLogger({ ...options, level: 'fatal', stream: { write: (line) => (text = line) } }).fatal(message);
  return text;
}
