import type { Socket } from 'node:net';
import type { Subscription } from 'rxjs';
import { leavesFilesFree, openFilesLimit } from '../../net/open-files';
import type { ListenerName, SocketNotice } from '../messages';
import { type LoadedWorker, leastLoaded } from './least-loaded';
import type { WorkerPool } from './worker-pool';
import type { WorkerProcess } from './worker-process';

/** Milliseconds that a gRPC connection waits for a worker when none is ready. */
const WAIT_FOR_WORKER = 1_000;
/** Milliseconds in which every worker that answers has taken the connections that are on their way to it. */
const TAKEN_WITHIN = 1_000;

/** A connection that a worker has or gets. */
interface Connection {
  readonly listener: ListenerName;
  /** The own copy of the socket, until the worker has taken it. */
  socket: Socket | undefined;
}

export interface ConnectionDispatchOptions {
  readonly pool: Pick<WorkerPool, 'serving$'>;
  /** How many gRPC connections may be open. */
  readonly maxGrpcConnections: number;
  /** Called for each connection that is closed when it is accepted, before it is closed. */
  readonly onRefused: (listener: ListenerName, bound: 'connections' | 'file_descriptors', socket: Socket) => void;
  /** Serves an HTTP connection while no worker is ready. */
  readonly serveUnavailable: (socket: Socket) => void;
}

/**
 * Gives every accepted connection to the least loaded worker that answers. The own copy of a socket is kept until the worker has it, so
 * that the connections on their way to a worker that dies are given to another one.
 */
export class ConnectionDispatch {
  readonly #options: ConnectionDispatchOptions;
  readonly #workers = new Set<ConnectedWorker>();
  readonly #filesLimit = openFilesLimit();
  readonly #subscription: Subscription;
  /** gRPC connections that wait for a worker, and what ends the wait of each. */
  readonly #waiting = new Map<Socket, NodeJS.Timeout>();
  readonly #onTaken = new Set<() => void>();

  constructor(options: ConnectionDispatchOptions) {
    this.#options = options;
    this.#subscription = options.pool.serving$.subscribe((process) => this.#connect(process));
  }

  /** The connections of a listener that are open or on their way to a worker. */
  count(listener: ListenerName): number {
    let count = listener === 'grpc' ? this.#waiting.size : 0;
    for (const { load } of this.#workers) count += load[listener];
    return count;
  }

  /** A connection was accepted, and nothing was read from it. */
  accepted(listener: ListenerName, socket: Socket): void {
    socket.on('error', () => socket.destroy());
    if (listener === 'grpc' && this.count('grpc') >= this.#options.maxGrpcConnections) {
      this.#refuse(listener, 'connections', socket);
    } else if (leavesFilesFree(socket, this.#filesLimit)) this.#place(listener, socket);
    else this.#refuse(listener, 'file_descriptors', socket);
  }

  /**
   * Resolves when no connection of a listener is on its way to a worker, or after a second: the others do not wait for a worker that
   * does not answer. Connections that wait for a worker are closed.
   */
  async settled(listener: ListenerName): Promise<void> {
    if (listener === 'grpc') for (const socket of this.#waiting.keys()) socket.destroy();
    let isOver = false;
    const timer = setTimeout(() => {
      isOver = true;
      this.#changed();
    }, TAKEN_WITHIN);
    while (!isOver && [...this.#workers].some((worker) => worker.isExpecting(listener))) {
      // oxlint-disable-next-line no-await-in-loop -- each turn waits for the next change
      await new Promise<void>((resolve) => this.#onTaken.add(resolve));
    }
    clearTimeout(timer);
  }

  close(): void {
    this.#subscription.unsubscribe();
    for (const socket of this.#waiting.keys()) socket.destroy();
  }

  #refuse(listener: ListenerName, bound: 'connections' | 'file_descriptors', socket: Socket): void {
    this.#options.onRefused(listener, bound, socket);
    socket.destroy();
  }

  #place(listener: ListenerName, socket: Socket): void {
    const worker = leastLoaded(this.#workers, listener);
    if (worker !== undefined) worker.give(listener, socket);
    else if (listener === 'http') this.#options.serveUnavailable(socket);
    else this.#wait(socket);
  }

  #wait(socket: Socket): void {
    this.#waiting.set(
      socket,
      setTimeout(() => socket.destroy(), WAIT_FOR_WORKER),
    );
    socket.once('close', () => this.#endWait(socket));
  }

  #endWait(socket: Socket): void {
    clearTimeout(this.#waiting.get(socket));
    this.#waiting.delete(socket);
  }

  #changed(): void {
    for (const resolve of this.#onTaken) resolve();
    this.#onTaken.clear();
  }

  #connect(process: WorkerProcess): void {
    const worker = new ConnectedWorker(process, () => this.#changed());
    this.#workers.add(worker);
    // oxlint-disable-next-line house-style/kept-subscriptions -- completes with the process
    process.exited$.subscribe(() => {
      this.#workers.delete(worker);
      for (const { listener, socket } of worker.ended()) if (socket !== undefined) this.#place(listener, socket);
    });
    for (const socket of [...this.#waiting.keys()]) {
      this.#endWait(socket);
      this.#place('grpc', socket);
    }
  }
}

/** The connections of one worker. */
class ConnectedWorker implements LoadedWorker {
  readonly load = { grpc: 0, http: 0 };
  isResponsive = true;
  readonly #process: WorkerProcess;
  readonly #onTaken: () => void;
  readonly #connections = new Map<number, Connection>();
  #lastId = 0;

  constructor(process: WorkerProcess, onTaken: () => void) {
    this.#process = process;
    this.#onTaken = onTaken;
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the process
    process.notices$.subscribe((notice) => this.#noticed(notice));
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the process
    process.responsiveness$.subscribe((state) => (this.isResponsive = state === 'responsive'));
  }

  give(listener: ListenerName, socket: Socket): void {
    const id = (this.#lastId += 1);
    this.#connections.set(id, { listener, socket });
    this.load[listener] += 1;
    this.#process.pass({ id, listener }, socket);
  }

  isExpecting(listener: ListenerName): boolean {
    for (const connection of this.#connections.values()) {
      if (connection.listener === listener && connection.socket !== undefined) return true;
    }
    return false;
  }

  /** The worker has ended: returns all of its connections, and forgets them. */
  ended(): readonly Connection[] {
    const connections = [...this.#connections.values()];
    this.#connections.clear();
    this.#onTaken();
    return connections;
  }

  #noticed(notice: SocketNotice): void {
    if ('taken' in notice) {
      const connection = this.#connections.get(notice.taken);
      connection?.socket?.destroy();
      if (connection !== undefined) connection.socket = undefined;
      this.#onTaken();
      return;
    }
    const connection = this.#connections.get(notice.closed);
    if (connection === undefined) return;
    this.load[connection.listener] -= 1;
    this.#connections.delete(notice.closed);
  }
}
