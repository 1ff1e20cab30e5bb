import type { Application } from './application';
import type { SendQueue } from './send-queue';
import type { Stream } from './stream';

export interface RunQueueControl {
  readonly hasEnded: boolean;
  /** Streams are waiting: {@link RunQueue.run} must be called in the next turn, unless it is called in this one. */
  runLater(): void;
}

export interface RunQueueParts<S> {
  readonly control: RunQueueControl;
  readonly application: Pick<Application<unknown, S>, 'run'>;
  readonly sendQueue: Pick<SendQueue<S>, 'exceedsSoftLimit' | 'flushIfLong'>;
  /** How many streams run in one turn, before other connections get theirs. */
  readonly perTurn: number;
}

/** The streams whose work is to begin once the current chunk has been read. Limits how many of them begin in one turn. */
export class RunQueue<S> {
  readonly #control: RunQueueControl;
  readonly #application: RunQueueParts<S>['application'];
  readonly #sendQueue: RunQueueParts<S>['sendQueue'];
  readonly #perTurn: number;
  readonly #streams: Stream<S>[] = [];
  #next = 0;

  constructor({ control, application, sendQueue, perTurn }: RunQueueParts<S>) {
    this.#control = control;
    this.#application = application;
    this.#sendQueue = sendQueue;
    this.#perTurn = perTurn;
  }

  add(stream: Stream<S>): void {
    this.#streams.push(stream);
    if (this.#streams.length === 1) this.#control.runLater();
  }

  run(): void {
    const streams = this.#streams;
    const control = this.#control;
    const sendQueue = this.#sendQueue;
    let left = this.#perTurn;
    while (this.#next < streams.length && !control.hasEnded) {
      if (sendQueue.exceedsSoftLimit) return;
      if (left === 0) {
        control.runLater();
        return;
      }
      left -= 1;
      const stream = streams[this.#next]!;
      this.#next += 1;
      if (stream.isClosed) continue;
      stream.isRunning = true;
      stream.hasRun = true;
      this.#application.run(stream);
      sendQueue.flushIfLong();
    }
    this.clear();
  }

  clear(): void {
    this.#streams.length = 0;
    this.#next = 0;
  }
}
