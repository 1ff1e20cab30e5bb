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
  private readonly streams: Stream<S>[] = [];
  private next = 0;

  /** `perTurn`: how many streams run before others have their turn. */
  constructor(
    private readonly owner: RunQueueOwner,
    private readonly application: Pick<Application<unknown, S>, 'run'>,
    private readonly outflow: SendQueue<S>,
    private readonly perTurn: number,
  ) {}

  add(stream: Stream<S>): void {
    this.streams.push(stream);
    if (this.streams.length === 1) this.owner.runLater();
  }

  run(): void {
    const { streams, owner, outflow } = this;
    let left = this.perTurn;
    while (this.next < streams.length && !owner.isOver) {
      if (outflow.isOverSoftLimit) return;
      if (left-- === 0) {
        owner.runLater();
        return;
      }
      const stream = streams[this.next++]!;
      if (stream.isClosed) continue;
      stream.isRunning = true;
      stream.wasRun = true;
      this.application.run(stream);
      outflow.flushIfLong();
    }
    this.clear();
  }

  clear(): void {
    this.streams.length = 0;
    this.next = 0;
  }
}
