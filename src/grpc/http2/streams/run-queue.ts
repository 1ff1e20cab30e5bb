import type { Application } from './application';
import type { SendQueue } from './send-queue';
import type { Stream } from './stream';

export interface RunQueueOwner {
  readonly isOver: boolean;
  /** Streams wait, and nobody is about to call {@link RunQueue.run}: somebody has to, in the next turn. */
  runLater(): void;
}

/** Streams whose work is to begin: after the chunk that brought them has been read, and within bounds of fairness. */
export class RunQueue<S> {
  readonly #owner: RunQueueOwner;
  readonly #application: Pick<Application<unknown, S>, 'run'>;
  readonly #outflow: SendQueue<S>;
  readonly #perTurn: number;
  readonly #streams: Stream<S>[] = [];
  #next = 0;

  /** `perTurn`: how many streams run before others have their turn. */
  constructor(
    owner: RunQueueOwner,
    application: Pick<Application<unknown, S>, 'run'>,
    outflow: SendQueue<S>,
    perTurn: number,
  ) {
    this.#owner = owner;
    this.#application = application;
    this.#outflow = outflow;
    this.#perTurn = perTurn;
  }

  add(stream: Stream<S>): void {
    this.#streams.push(stream);
    if (this.#streams.length === 1) this.#owner.runLater();
  }

  run(): void {
    const streams = this.#streams;
    const owner = this.#owner;
    const outflow = this.#outflow;
    let left = this.#perTurn;
    while (this.#next < streams.length && !owner.isOver) {
      if (outflow.isOverSoftLimit) return;
      if (left-- === 0) {
        owner.runLater();
        return;
      }
      const stream = streams[this.#next++]!;
      if (stream.isClosed) continue;
      stream.isRunning = true;
      stream.wasRun = true;
      this.#application.run(stream);
      outflow.flushIfLong();
    }
    this.clear();
  }

  clear(): void {
    this.#streams.length = 0;
    this.#next = 0;
  }
}
