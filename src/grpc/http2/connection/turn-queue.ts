/** A connection, at the end of a turn of the event loop. */
export interface TurnTask {
  /** Writes the frames of the turn to the transport. */
  flush(): void;
  /** Runs the streams that the turn left. */
  runScheduled(): void;
}

/**
 * The connections that have output to write, or streams to run, once the current turn of the event loop is over. However
 * many there are, one `setImmediate` is pending.
 */
export class TurnQueue {
  #toFlush: TurnTask[] = [];
  #toRun: TurnTask[] = [];
  #isScheduled = false;
  readonly #onTurnEnd = (): void => this.#endTurn();

  flushLater(connection: TurnTask): void {
    this.#toFlush.push(connection);
    this.#schedule();
  }

  runLater(connection: TurnTask): void {
    this.#toRun.push(connection);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#onTurnEnd);
  }

  #endTurn(): void {
    this.#isScheduled = false;
    const toFlush = this.#toFlush;
    const toRun = this.#toRun;
    this.#toFlush = [];
    this.#toRun = [];
    for (const connection of toFlush) connection.flush();
    for (const connection of toRun) {
      connection.runScheduled();
      connection.flush();
    }
  }
}
