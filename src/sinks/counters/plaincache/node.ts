import { type Observable, Subject } from 'rxjs';
import type { ConnectionOptions } from 'node:tls';
import type { CounterInstance, CounterLane } from '../../../streams/ports/counters';
import type { Log } from '../../../streams/ports/log';
import type { Expiry } from '../expiry';
import { parseServer } from '../server-address';
import { NodeLane } from './node-lane';
import type { PlaincacheStatistics } from './counting/plaincache-statistics';
import { VERSION_COMMAND, VersionReader } from './protocol/version-reader';
import { NodeConnections } from './nodes/node-connections';
import { NodeState } from './nodes/node-state';

/** What the nodes of a store have in common. */
export interface NodeContext {
  readonly tls: (() => ConnectionOptions) | undefined;
  readonly maxIdle: number;
  /** The time that each part of an exchange may take, in milliseconds. */
  readonly timeout: number;
  /** How long a pipeline window gathers, in milliseconds. */
  readonly span: number;
  readonly expiry: Expiry;
  readonly statistics: PlaincacheStatistics;
  readonly instance: CounterInstance;
  readonly log: Log;
  readonly onRejected: (error: Error) => void;
}

/** A memcached server: its connections, its state and its lane. */
export class Node {
  readonly name: string;
  readonly isUp$: Observable<boolean>;
  readonly #connections: NodeConnections;
  readonly #state: NodeState;
  readonly #lane: NodeLane;
  readonly #retired$ = new Subject<void>();

  /** @throws Error when the name is not an address */
  constructor(name: string, { tls, maxIdle, timeout, span, log, ...shared }: NodeContext) {
    this.name = name;
    this.#connections = new NodeConnections({ server: parseServer(name), tls, maxIdle, timeout });
    this.#state = new NodeState(name, log, () => this.#connections.read(VERSION_COMMAND, () => new VersionReader()));
    this.isUp$ = this.#state.isUp$;
    this.#lane = new NodeLane({
      ...shared,
      connections: this.#connections,
      state: this.#state,
      // One window at a time: the next one reads what this one has written.
      pipeline: { span, windowsInFlight: 1, whenFull: undefined },
      retired$: this.#retired$.asObservable(),
    });
  }

  get lane(): CounterLane {
    return this.#lane;
  }

  /** See {@link NodeLane.administer}. */
  administer<T>(run: (connections: NodeConnections) => Promise<T>): Promise<T> {
    return this.#lane.administer(run);
  }

  /** Finds out whether the server answers. */
  check(): void {
    this.#state.check();
  }

  /** The server has left the store. Resolves when its batches are written and its connections closed. */
  async retire(): Promise<void> {
    this.#retired$.next();
    // The window that was open is written after those in flight.
    for (let idle; idle !== this.#lane.idle;) await (idle = this.#lane.idle);
    this.#state.close();
    this.#connections.close();
  }
}
