import type { Limits } from '../limits/limits';
import type { Application } from './application';
import type { Clock } from './connection-control';
import type { SendQueue } from './send-queue';
import type { Stream } from './stream';
import type { PacedWork, WorkPacing } from './work-pacing';

export interface RunQueueControl {
  /** When the connection's part of this turn began. */
  readonly now: number;
  readonly hasEnded: boolean;
  /** Streams are waiting: {@link RunQueue.run} must be called in the next turn, unless it is called in this one. */
  runLater(): void;
}

export interface RunQueueParts<S> {
  readonly control: RunQueueControl;
  readonly application: Pick<Application<unknown, S>, 'run' | 'waits'>;
  readonly sendQueue: Pick<SendQueue<S>, 'exceedsSoftLimit' | 'flushIfLong'>;
  readonly clock: Clock;
  readonly limits: Pick<Limits, 'dispatchesPerTurn' | 'dispatchMs' | 'maxConcurrentStreams'>;
  readonly pacing: WorkPacing;
}

/** What a stream counts towards {@link WORK_PER_CHECK}, in addition to the bytes of its body. */
const STREAM_WORK = 256;
/** Reading the clock after every stream would be noticeable: this much work, in bytes, takes far less than a millisecond. */
const WORK_PER_CHECK = 4_096;

/** Streams that have run are removed when they are this many: each removal moves those that are left. */
const FORGOTTEN_AT_ONCE = 128;

/** The streams whose work is to begin once the current chunk has been read. Limits what of it is done in one turn. */
export class RunQueue<S> implements PacedWork {
  readonly #control: RunQueueControl;
  readonly #application: RunQueueParts<S>['application'];
  readonly #sendQueue: RunQueueParts<S>['sendQueue'];
  readonly #clock: Clock;
  readonly #limits: RunQueueParts<S>['limits'];
  readonly #pacing: WorkPacing;
  readonly #streams: Stream<S>[] = [];
  #next = 0;
  /** The application was told of those before it that they wait. */
  #told = 0;
  /** It waits until {@link WorkPacing} resumes it. */
  #isWaiting = false;
  /** It waits, or is about to go on. */
  hasBacklog = false;

  constructor({ control, application, sendQueue, clock, limits, pacing }: RunQueueParts<S>) {
    this.#control = control;
    this.#application = application;
    this.#sendQueue = sendQueue;
    this.#clock = clock;
    this.#limits = limits;
    this.#pacing = pacing;
  }

  /** How many streams wait because the process has more work than time. */
  get waiting(): number {
    if (!this.#isWaiting) return 0;
    return this.#streams.reduce((sum, { isClosed }, index) => sum + (index < this.#next || isClosed ? 0 : 1), 0);
  }

  add(stream: Stream<S>): void {
    if (this.#streams.length >= 2 * this.#limits.maxConcurrentStreams) this.#forgetClosed();
    this.#streams.push(stream);
    if (this.#isWaiting) this.#tellWaiting();
    if (this.#streams.length === 1) this.#control.runLater();
  }

  resume(): boolean {
    this.#isWaiting = false;
    while (this.#streams[this.#next]?.isClosed === true) this.#next += 1;
    if (this.#next === this.#streams.length) {
      this.hasBacklog = false;
      this.clear();
      return false;
    }
    this.#control.runLater();
    return true;
  }

  run(): void {
    if (this.#isWaiting) return;
    this.#runSome();
    if (!this.#isWaiting) this.hasBacklog = false;
    // Also while streams are left: those that have run must not be kept.
    if (this.#next === this.#streams.length || this.#control.hasEnded) this.clear();
    else if (this.#next >= FORGOTTEN_AT_ONCE) {
      this.#streams.splice(0, this.#next);
      this.#told = Math.max(0, this.#told - this.#next);
      this.#next = 0;
    }
  }

  #runSome(): void {
    const streams = this.#streams;
    const control = this.#control;
    const sendQueue = this.#sendQueue;
    const { dispatchesPerTurn, dispatchMs } = this.#limits;
    const until = control.now + dispatchMs;
    let left = dispatchesPerTurn;
    let unchecked = 0;
    while (this.#next < streams.length && !control.hasEnded) {
      if (sendQueue.exceedsSoftLimit) {
        this.#tellWaiting();
        return;
      }
      if (left === 0) {
        control.runLater();
        return;
      }
      const stream = streams[this.#next]!;
      if (!stream.isClosed && !this.#pacing.mayStart) {
        this.#wait();
        return;
      }
      this.#next += 1;
      if (stream.isClosed) continue;
      left -= 1;
      // A body that is kept may be compressed, and take any time.
      unchecked += stream.held > 0 ? WORK_PER_CHECK : STREAM_WORK + stream.bodyBytes;
      // A stream may run several times until its work ends.
      if (stream.isPaced && !stream.isCounted) {
        stream.isCounted = true;
        this.#pacing.started();
      }
      stream.isRunning = true;
      stream.hasRun = true;
      this.#application.run(stream);
      sendQueue.flushIfLong();
      if (unchecked < WORK_PER_CHECK) continue;
      unchecked = 0;
      if (this.#clock.now() >= until) left = 0;
    }
  }

  #wait(): void {
    this.#isWaiting = true;
    this.hasBacklog = true;
    this.#tellWaiting();
    this.#pacing.wait(this);
  }

  #tellWaiting(): void {
    const streams = this.#streams;
    for (let index = Math.max(this.#next, this.#told); index < streams.length; index += 1) {
      const stream = streams[index]!;
      if (!stream.isClosed) this.#application.waits(stream);
    }
    this.#told = streams.length;
  }

  /** Streams that are closed while they wait free their slots, so that more can be opened. */
  #forgetClosed(): void {
    const told = this.#openBetween(this.#next, this.#told);
    const others = this.#openBetween(Math.max(this.#next, this.#told), this.#streams.length);
    this.#streams.splice(0, this.#streams.length, ...told, ...others);
    this.#told = told.length;
    this.#next = 0;
  }

  #openBetween(start: number, end: number): readonly Stream<S>[] {
    return this.#streams.slice(start, Math.max(start, end)).filter(({ isClosed }) => !isClosed);
  }

  clear(): void {
    this.#streams.length = 0;
    this.#next = 0;
    this.#told = 0;
  }
}
