import type { Connection } from './connection';
import { LIMITS } from './limits';

/**
 * The connections that have output to write, or streams to run, once the current turn of the event loop is over.
 * However many there are, one `setImmediate` is pending. The connections with streams to run take turns: each runs for
 * a limited time, and those for which a turn has no time left are first in the next one. Between turns sockets are
 * read, so that a connection without such streams does not wait for these.
 */
export class FlushScheduler {
  /** Milliseconds, monotonic. */
  readonly #now: () => number;
  #toFlush: Connection[] = [];
  #toRun: Connection[] = [];
  #isScheduled = false;
  /** When this turn began, at the latest. */
  #began = -Infinity;
  /** Something waits that has arrived in an earlier turn: what arrives now is behind it. */
  #isBehind = false;
  readonly #onTurnEnd = (): void => this.#endTurn();

  constructor(now: () => number) {
    this.#now = now;
  }

  flushLater(connection: Connection): void {
    this.#toFlush.push(connection);
    this.#schedule();
  }

  runLater(connection: Connection): void {
    this.#toRun.push(connection);
    this.#schedule();
  }

  /** Whether this turn has lasted so long that what arrives now must wait for the next one. */
  isOver(now: number): boolean {
    if (this.#isBehind) return true;
    if (now - this.#began < LIMITS.turnMs) return false;
    if (this.#isScheduled) return (this.#isBehind = true);
    // The turn has begun at any time since: from now on its end is known.
    this.#began = now;
    this.#schedule();
    return false;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#onTurnEnd);
  }

  #endTurn(): void {
    this.#isScheduled = false;
    const toFlush = this.#toFlush;
    this.#toFlush = [];
    for (const connection of toFlush) connection.flush();
    if (this.#toRun.length > 0) this.#runRound();
    if (this.#toRun.length === 0) this.#isBehind = false;
    this.#began = this.#now();
  }

  #runRound(): void {
    const toRun = this.#toRun;
    // Connections that still have streams to run append themselves again.
    this.#toRun = [];
    const until = this.#now() + LIMITS.roundMs;
    let ran = 0;
    do {
      const connection = toRun[ran]!;
      ran += 1;
      connection.runScheduled();
      connection.flush();
    } while (ran < toRun.length && this.#now() < until);
    if (ran === toRun.length) return;
    this.#toRun = [...toRun.slice(ran), ...this.#toRun];
    this.#schedule();
  }
}
