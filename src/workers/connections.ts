import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { type Observable, Subject } from 'rxjs';

/** A listener of the primary. */
export type ListenerName = 'grpc' | 'http';

/** Sent over the IPC channel together with a socket. */
interface Passed {
  readonly id: number;
  readonly listener: ListenerName;
}

/**
 * What a worker answers over the IPC channel: that it has the socket of this number, and later that the socket is
 * closed.
 */
type SocketNotice = { readonly taken: number } | { readonly closed: number };

/** A connection that a worker has or gets. */
interface Connection {
  readonly listener: ListenerName;
  /** The own copy of the socket, until the worker has taken it. */
  socket: Socket | undefined;
}

/**
 * The connections of one worker, seen from the primary. They go over the IPC channel, which carries nothing else,
 * because messages queue behind sockets. The own copy of a socket is kept until the worker has it: one that is on its
 * way to a process that dies is lost.
 */
export class WorkerConnections {
  /** The connections that the worker has, or that are on their way to it. */
  readonly load: Record<ListenerName, number> = { grpc: 0, http: 0 };
  /** The connections that are on their way to the worker. */
  readonly inTransit: Record<ListenerName, number> = { grpc: 0, http: 0 };
  readonly #child: Pick<ChildProcess, 'send'>;
  readonly #connections = new Map<number, Connection>();
  readonly #taken = new Subject<unknown>();
  #lastId = 0;

  constructor(child: Pick<ChildProcess, 'send' | 'on'>) {
    this.#child = child;
    child.on('message', (notice) => this.#noticed(notice as SocketNotice));
  }

  /** Emits each time when fewer connections are on their way. */
  get taken$(): Observable<unknown> {
    return this.#taken.asObservable();
  }

  give(listener: ListenerName, socket: Socket): void {
    const id = (this.#lastId += 1);
    this.#connections.set(id, { listener, socket });
    this.load[listener] += 1;
    this.inTransit[listener] += 1;
    const passed: Passed = { id, listener };
    // A failure is followed by the end of the worker.
    this.#child.send({ ...passed }, socket, { keepOpen: true }, () => undefined);
  }

  /** The worker has ended: returns the connections that it has not taken, and forgets all. */
  ended(): readonly (readonly [ListenerName, Socket])[] {
    const untaken = [...this.#connections.values()].flatMap(({ listener, socket }) =>
      socket === undefined ? [] : [[listener, socket] as const],
    );
    this.#connections.clear();
    Object.assign(this.inTransit, { grpc: 0, http: 0 });
    this.#taken.next(undefined);
    return untaken;
  }

  #noticed(notice: SocketNotice): void {
    const connection = this.#connections.get('taken' in notice ? notice.taken : notice.closed);
    if (connection === undefined) return;
    if ('taken' in notice) {
      this.inTransit[connection.listener] -= 1;
      connection.socket?.destroy();
      connection.socket = undefined;
      this.#taken.next(undefined);
    } else {
      this.load[connection.listener] -= 1;
      this.#connections.delete(notice.closed);
    }
  }
}

/** The IPC channel of a worker: a part of `process`. */
export interface IpcChannel {
  on(event: 'message', listener: (message: Passed, socket: Socket | undefined) => void): unknown;
  send?(message: SocketNotice, handle: undefined, options: undefined, sent: () => void): boolean;
}

/**
 * Receives, in a worker, the connections that the primary has accepted, and reports for each that it is here and later
 * that it is closed.
 *
 * @param serve called with each socket, from which nothing was read yet
 */
export function receiveConnections(ipc: IpcChannel, serve: (listener: ListenerName, socket: Socket) => void): void {
  function notify(notice: SocketNotice): void {
    // Without the callback, an error after the end of the primary would end the process.
    ipc.send?.(notice, undefined, undefined, () => undefined);
  }
  ipc.on('message', ({ id, listener }, socket) => {
    notify({ taken: id });
    // Also when the process had no file descriptor left to receive it with.
    if (socket === undefined) return notify({ closed: id });
    socket.once('close', () => notify({ closed: id }));
    return serve(listener, socket);
  });
}
