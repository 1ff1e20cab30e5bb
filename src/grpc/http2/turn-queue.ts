interface TurnTask {
  flush(): void;
  runScheduled(): void;
}

/**
 * The connections that have output to write, or streams to run, once the current turn of the event loop is over. However
 * many there are, one `setImmediate` is pending.
 */
export class TurnQueue<C extends TurnTask> {
  #toFlush: C[] = [];
  #toRun: C[] = [];
  #isScheduled = false;
  readonly #onTurnEnd = (): void => this.#endTurn();

  flushLater(connection: C): void {
    this.#toFlush.push(connection);
    this.#schedule();
  }

  runLater(connection: C): void {
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
