import type { ConnectionDeadlines } from './connection-deadlines';
import { LIMITS, type Limits } from './limits';
import type { Output } from './output';
import type { Stream } from './stream';

/** What a stream counts towards {@link WORK_PER_CHECK}, in addition to the bytes of its body. */
const STREAM_WORK = 256;
/**
 * Reading the clock after every stream would be noticeable: this much work, in bytes, takes far less than a
 * millisecond.
 */
const WORK_PER_CHECK = 4_096;
/** Streams that have run are removed when they are this many: each removal moves those that are left. */
const FORGOTTEN_AT_ONCE = 128;

/** Streams that may be opened while others have to wait. */
const LEAST_AHEAD = 64;

/** The share of the time that the event loop waits for events, below which this process has more work than time. */
const LEAST_IDLE = 0.1;
/**
 * How the limit changes with each check that finds the process busy, and with each that does not while streams wait.
 */
const SHRINKING = 0.7;
const GROWTH = 1.5;

/** What a {@link RunQueue} uses of its server. */
export interface RunContext {
  readonly limits: Limits;
  readonly pacing: WorkPacing;
  /** Milliseconds, monotonic. */
  readonly now: () => number;
}

/** The streams whose work is to begin once the current chunk has been read. Limits what of it is done in one turn. */
export class RunQueue {
  readonly #context: RunContext;
  readonly #deadlines: ConnectionDeadlines;
  readonly #output: Output;
  readonly #runLater: () => void;
  #streams: Stream[] = [];
  #next = 0;
  /** An index: the calls of the streams before it know that they may have to wait. */
  #announced = 0;
  /** How many streams {@link WorkPacing} expects to begin. */
  #expected = 0;
  /** The queue waits until {@link WorkPacing} resumes it. */
  #isWaiting = false;
  /** The queue waits, or is about to continue. */
  hasBacklog = false;

  /**
   * @param runLater streams are waiting: {@link run} must be called in the next turn, unless it is called in this one
   */
  constructor(context: RunContext, deadlines: ConnectionDeadlines, output: Output, runLater: () => void) {
    this.#context = context;
    this.#deadlines = deadlines;
    this.#output = output;
    this.#runLater = runLater;
  }

  /** How many streams wait because the process has more work than time. */
  get waiting(): number {
    return this.#isWaiting ? this.#open().length : 0;
  }

  /** Whether no more streams should be opened, as many wait: as bytes they take a fraction of the memory. */
  get isFull(): boolean {
    const waiting = this.#streams.length - this.#next;
    return waiting >= LEAST_AHEAD && waiting >= this.#context.pacing.room;
  }

  add(stream: Stream): void {
    // Streams that are closed while they wait free their slots, so that more can be opened.
    if (this.#streams.length >= 2 * this.#context.limits.maxConcurrentStreams) {
      this.#streams = this.#open();
      this.#next = 0;
      this.#announced = 0;
    }
    this.#streams.push(stream);
    if (this.#isWaiting) this.#announceWait();
    if (this.#streams.length === 1) this.#runLater();
  }

  /**
   * The streams may run, in one of the next turns. Returns how many may begin in that turn; 0 if there are none any
   * more.
   */
  resume(): number {
    this.#isWaiting = false;
    while (this.#streams[this.#next]?.isClosed === true) this.#next += 1;
    this.#expected = Math.min(this.#streams.length - this.#next, LIMITS.dispatchesPerTurn);
    this.#runLater();
    return this.#expected;
  }

  run(): void {
    if (this.#isWaiting) return;
    this.#runSome();
    if (!this.#isWaiting) this.hasBacklog = false;
    if (this.#expected > 0) {
      this.#context.pacing.ran(this.#expected);
      this.#expected = 0;
    }
    // Also while streams are left: those that have run must not be kept.
    if (this.#next === this.#streams.length || this.#deadlines.hasEnded) this.#clear();
    else if (this.#next >= FORGOTTEN_AT_ONCE) {
      this.#streams.splice(0, this.#next);
      this.#announced = Math.max(0, this.#announced - this.#next);
      this.#next = 0;
    }
  }

  #runSome(): void {
    const output = this.#output;
    const { pacing } = this.#context;
    const until = this.#deadlines.now + LIMITS.dispatchMs;
    let left: number = LIMITS.dispatchesPerTurn;
    let unchecked = 0;
    while (this.#next < this.#streams.length && !this.#deadlines.hasEnded) {
      if (output.exceedsSoftLimit) return this.#announceWait();
      if (left === 0) return this.#runLater();
      const stream = this.#streams[this.#next]!;
      if (!stream.isClosed && !pacing.mayStart) return this.#wait();
      this.#next += 1;
      if (stream.isClosed) continue;
      left -= 1;
      // A body that is kept has been received in pieces, and may take any time.
      unchecked += stream.held > 0 ? WORK_PER_CHECK : STREAM_WORK + stream.bodyBytes;
      // A stream may run several times until its work ends.
      if (!stream.staysOpen && !stream.isCounted) {
        stream.isCounted = true;
        pacing.started();
      }
      stream.isRunning = true;
      stream.hasRun = true;
      stream.call!.run();
      output.flushIfLong();
      if (unchecked < WORK_PER_CHECK) continue;
      unchecked = 0;
      if (this.#context.now() >= until) left = 0;
    }
  }

  #wait(): void {
    this.#isWaiting = true;
    this.hasBacklog = true;
    this.#announceWait();
    this.#context.pacing.wait(this);
  }

  #announceWait(): void {
    const streams = this.#streams;
    for (let index = Math.max(this.#next, this.#announced); index < streams.length; index += 1) {
      const { isClosed, call } = streams[index]!;
      if (!isClosed) call?.waits();
    }
    this.#announced = streams.length;
  }

  /** The open streams that have not run. */
  #open(): Stream[] {
    return this.#streams.slice(this.#next).filter(({ isClosed }) => !isClosed);
  }

  #clear(): void {
    this.#streams.length = 0;
    this.#next = 0;
    this.#announced = 0;
  }
}

/** The part of the event loop's clock that {@link WorkPacing} reads. */
export interface IdleClock {
  /** Milliseconds for which this process has waited for events since it started. */
  idle(): number;
}

/**
 * Lets streams wait to run while this process has more work than time. What the application keeps for a running stream
 * has to be copied by each garbage collection while the stream runs: with thousands of them a call costs up to twice as
 * much, and a backlog, once there, would not be worked off. A stream that waits takes a fraction of that; it can expire
 * and be reset.
 *
 * While the event loop is hardly ever idle, fewer and fewer streams run at once, down to {@link Limits.pacedStreams}.
 * If it becomes idle by that, the streams wait for something else, which others do not delay: then more may run, and
 * without a limit as soon as none waits.
 */
export class WorkPacing {
  readonly #least: number;
  readonly #clock: IdleClock;
  /** The streams of connections, in the order in which these began to wait. */
  #waiting: RunQueue[] = [];
  /** How many streams those that have been resumed may begin: each that finds no room has waited for nothing. */
  #expected = 0;
  /** Bytes that have arrived and are not read, on all connections. */
  unreadBytes = 0;
  #running = 0;
  #limit = Infinity;
  #checkedAt: number;
  #idleThen: number;

  /** `now` in milliseconds, as of {@link check}. */
  constructor({ pacedStreams }: Pick<Limits, 'pacedStreams'>, clock: IdleClock, now: number) {
    this.#least = pacedStreams;
    this.#clock = clock;
    this.#checkedAt = now;
    this.#idleThen = clock.idle();
  }

  /** Adjusts the limit. Must be called several times a second. */
  check(now: number): void {
    const idle = this.#clock.idle();
    const isBusy = idle - this.#idleThen < (now - this.#checkedAt) * LEAST_IDLE;
    this.#checkedAt = now;
    this.#idleThen = idle;
    if (isBusy) this.#limit = Math.max(this.#least, Math.min(this.#limit, this.#running) * SHRINKING);
    else this.#limit = this.#waiting.length === 0 ? Infinity : this.#limit * GROWTH;
    this.#resumeSome();
  }

  get mayStart(): boolean {
    return this.room > 0;
  }

  /** How many more streams may run. */
  get room(): number {
    return this.#limit - this.#running;
  }

  started(): void {
    this.#running += 1;
  }

  ended(): void {
    this.#running -= 1;
    this.#resumeSome();
  }

  /** A queue has run that was resumed for this number of streams; also one whose connection has ended. */
  ran(expected: number): void {
    this.#expected -= expected;
    this.#resumeSome();
  }

  #resumeSome(): void {
    while (this.#waiting.length > 0 && this.#expected < this.room) {
      this.#expected += this.#waiting.shift()!.resume();
    }
  }

  /** The queue waits until it is resumed. */
  wait(queue: RunQueue): void {
    this.#waiting.push(queue);
  }
}
