import { write } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';
import { workerData } from 'node:worker_threads';

/** What the thread that watches an event loop is started with. */
export interface LoopThreadData extends StandstillOptions {
  /** Counts the turns of the event loop, about one per tick. */
  readonly turns: Int32Array;
  /** How many profiles and heap snapshots of the process are being taken. */
  readonly recordings: Int32Array;
  /** Milliseconds between two looks at the loop. */
  readonly tick: number;
  /** The process ID of the primary; undefined if this process is no worker. */
  readonly primary: number | undefined;
  /** The last line of the log for each reason, with the time at which it was built. */
  readonly lines: Readonly<Record<Reason, string>>;
}

/** Why a process is killed: its loop stands still, or does while its primary is gone. */
export type Reason = 'stalled' | 'orphaned';

/** How many ticks the event loop may stand still. Infinity: for ever. */
export interface StandstillOptions {
  readonly limit: number;
  /** While a profile or a heap snapshot is taken. */
  readonly recordingLimit: number;
  /** In a worker whose primary is gone. */
  readonly orphanLimit: number;
}

/** What one tick finds. */
interface Observation {
  /** The turns of the event loop so far. */
  readonly turns: number;
  readonly isRecording: boolean;
  readonly isOrphan: boolean;
}

/**
 * Finds that an event loop stands still. Time is counted in ticks of the thread that watches: while the machine or the
 * process is suspended, the thread does not tick either.
 */
export class Standstill {
  readonly #options: StandstillOptions;
  #turns = 0;
  #ticks = 0;

  constructor(options: StandstillOptions) {
    this.#options = options;
  }

  /** To be called once per tick. @returns why the process has to be killed, or undefined */
  tick({ turns, isRecording, isOrphan }: Observation): Reason | undefined {
    this.#ticks = turns === this.#turns ? this.#ticks + 1 : 0;
    this.#turns = turns;
    const { limit, recordingLimit, orphanLimit } = this.#options;
    if (isOrphan && this.#ticks >= orphanLimit) return 'orphaned';
    return this.#ticks >= (isRecording ? Math.max(limit, recordingLimit) : limit) ? 'stalled' : undefined;
  }
}

/** Milliseconds that the last line may take: standard error may block. */
const WRITE_TIMEOUT = 1_000;
const TIME = /\d{4}-\d\d-\d\dT[\d:.]+Z/;

function watch({ turns, recordings, tick, primary, lines, ...limits }: LoopThreadData): void {
  const standstill = new Standstill(limits);
  const ticks = setInterval(() => {
    const reason = standstill.tick({
      turns: Atomics.load(turns, 0),
      isRecording: Atomics.load(recordings, 0) > 0,
      isOrphan: primary !== undefined && process.ppid !== primary,
    });
    if (reason === undefined) return;
    clearInterval(ticks);
    write(2, lines[reason].replace(TIME, new Date().toISOString()), kill);
    setTimeout(kill, WRITE_TIMEOUT);
  }, tick);
}

/** Ends the process from a thread, where `process.exit` would end only the thread. */
function kill(): void {
  process.kill(process.pid, 'SIGKILL');
  // The first process of a container (PID 1) goes on: the kernel ignores signals that it sends to itself, SIGKILL
  // included, but not a fault of the processor, as a breakpoint is without a debugger. Of Node and V8, everything else
  // that ends a process is for the main thread only, or writes more lines.
  setFlagsFromString('--allow-natives-syntax');
  new Script('%SystemBreak()').runInThisContext();
}

if (workerData !== null) watch(workerData as LoopThreadData);
