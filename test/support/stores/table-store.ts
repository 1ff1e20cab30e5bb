import { type Socket, connect } from 'node:net';
import { createInterface } from 'node:readline';
import { NEVER, map } from 'rxjs';
import { DecisionError, timedOut } from '../../../src/counting/decision-error';
import { type Counted, type Operation, type Result, readOf } from '../../../src/counting/operation';
import { decidedOnRead, stopsWhenOver } from '../../../src/counting/read-then-decide';
import { lifetimeOf } from '../../../src/sinks/counters/expiry';
import type { Deadline } from '../../../src/streams/deadline';
import type { CounterAdministration, StoredCounter } from '../../../src/streams/ports/counter-administration';
import type { CounterLane, Counters } from '../../../src/streams/ports/counters';
import type { ServerState } from '../../../src/streams/server-state';
import type { ServerStates } from '../../../src/streams/server-views';

/** A command of the protocol of {@link TableServer}, each on a line of its own; replies come in the same order. */
export type Command =
  | readonly ['ping']
  /** Adds hits to keys in one step: each with the lifetime of a key that is created, in seconds. The reply: counts. */
  | readonly ['count', ...(readonly [key: string, hits: number, lifetime: number])[]]
  /** Sets a count, removes the key, or only reads it. Replies with the counter before. */
  | readonly ['change', key: string, to: number | 'nothing' | 'same', lifetime: number];

type Waiting = (reply: unknown, error?: Error) => void;

/** All that a counter store consists of: one lane, one connection, and what is known of its server. */
export class TableStore implements Counters, CounterLane, CounterAdministration {
  readonly pipeline = { span: 0, windowsInFlight: 4, whenFull: undefined };
  readonly instance = { lanesAtOnce: 1 };
  readonly retired$ = NEVER;
  readonly server: ServerState;
  readonly connected$;
  readonly #port: number;
  readonly #waiting: Waiting[] = [];
  #socket: Socket | undefined;
  #isClosed = false;

  constructor(port: number, servers: ServerStates) {
    this.#port = port;
    this.server = servers.open({
      name: { server: `127.0.0.1:${port}` },
      timeout: 10_000,
      probe: () => this.#probe(),
      lines: { begins: 'the table does not answer', ends: 'the table answers again' },
    });
    this.connected$ = this.server.reports$.pipe(map(({ condition }) => condition === 'answering'));
    this.#connect();
  }

  laneOf(): CounterLane {
    return this;
  }

  async apply(batch: readonly Operation[], deadline: Deadline): Promise<readonly Result[]> {
    if (!batch.some(stopsWhenOver)) return this.#count(batch, deadline);
    const stored = await this.#count(batch.map(readOf), deadline);
    return this.#count(decidedOnRead(batch, stored), deadline);
  }

  readCounter({ key, limit }: Counted): Promise<StoredCounter> {
    return this.#send<StoredCounter>(['change', key, 'same', lifetimeOf(limit)]);
  }

  changeCounter({ key, limit }: Counted, count: number | null): Promise<StoredCounter> {
    return this.#send<StoredCounter>(['change', key, count ?? 'nothing', lifetimeOf(limit)]);
  }

  async close(): Promise<void> {
    while (this.#waiting.length > 0) await this.#send(['ping']);
    this.#isClosed = true;
    this.#socket?.destroy();
    this.server.end();
  }

  #count(batch: readonly Operation[], deadline: Deadline): Promise<readonly number[]> {
    if (deadline.hasPassed) throw timedOut({ isUncounted: true });
    const steps = batch.map(({ key, hits, limit }) => [key, hits, lifetimeOf(limit)] as const);
    const connection = { cut: () => this.#socket?.destroy() };
    deadline.begin(connection);
    return this.#send<readonly number[]>(['count', ...steps]).finally(() => deadline.left(connection));
  }

  #probe(): void {
    this.#send(['ping']).then(
      () => this.server.checked(),
      ({ message }: Error) => this.server.checked(message),
    );
  }

  /** Resolves with the reply; rejects with a DecisionError when the connection is lost before. */
  #send<T>(command: Command): Promise<T> {
    return new Promise((resolve, reject) => {
      const socket = this.#socket;
      if (socket === undefined) {
        reject(new DecisionError('store_failed', 'there is no connection to the table', { isUncounted: true }));
        return;
      }
      socket.write(`${JSON.stringify(command)}\n`);
      this.#waiting.push((reply, error) => (error === undefined ? resolve(reply as T) : reject(error)));
    });
  }

  #connect(): void {
    const socket = connect(this.#port, '127.0.0.1').setNoDelay(true);
    let reason = 'the connection was closed';
    socket.on('error', ({ message }) => (reason = message));
    socket.on('close', () => {
      this.#socket = undefined;
      const error = new DecisionError('store_failed', 'the connection to the table was lost', { cause: reason });
      for (const lost of this.#waiting.splice(0)) lost(undefined, error);
      this.server.connected(0, reason);
      if (!this.#isClosed) setTimeout(() => this.#connect(), 50).unref();
    });
    socket.on('connect', () => {
      this.#socket = socket;
      this.server.connected(1);
    });
    createInterface(socket).on('line', (line) => this.#waiting.shift()?.(JSON.parse(line)));
  }
}
