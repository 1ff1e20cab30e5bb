import { type AddressInfo, type Server, type Socket, createServer } from 'node:net';
import {
  type SchedulerLike,
  Subject,
  type Subscription,
  asyncScheduler,
  filter,
  firstValueFrom,
  merge,
  timer,
} from 'rxjs';
import { type ListenAddress, type TcpAddress, listen } from '../net/listen';
import { openFiles } from '../net/open-files';
import { countedAddress } from '../rules/networks';
import type { Connections } from '../streams/drain';
import type { ListenerName, WorkerConnections } from './connections';
import { FairQueue } from './fair-queue';
import type { WorkerPool } from './pool';
import type { WorkerProcess } from './process';

/** Milliseconds that a gRPC connection waits for a worker when none is ready. */
const WAIT_FOR_WORKER = 1_000;
/**
 * How many connections of a listener may be on their way to a worker; further ones wait. A hand-over takes the primary
 * about half a millisecond, so that more would keep those of the other listener waiting.
 */
const MAX_IN_TRANSIT = 16;
/** Milliseconds in which every worker that answers has taken the connections that are on their way to it. */
const TAKEN_WITHIN = 1_000;

/** What a connection is refused for. `hand_over`: more arrive than can be given to the workers. */
export type ConnectionBound = 'connections' | 'file_descriptors' | 'hand_over';

export interface ConnectionDispatchOptions {
  readonly pool: Pick<WorkerPool, 'workers' | 'serving$'>;
  /**
   * How many gRPC connections may be open, wait for a worker or be on their way to one; how many HTTP connections may
   * wait: the workers close open ones for new ones.
   */
  readonly maxConnections: Readonly<Record<ListenerName, number>>;
  /** Called for each connection that is closed when it is accepted, before it is closed. */
  readonly onRefused: (listener: ListenerName, bound: ConnectionBound, socket: Socket) => void;
  /** Called for each connection that its peer has reset before a worker had it. */
  readonly onReset: (listener: ListenerName) => void;
  /** Serves the HTTP connections while no worker is ready. */
  readonly unavailable: { adopt(socket: Socket): void; close(): Promise<void>; abort(): void };
  /** Called when a listener cannot accept a connection. */
  readonly onError: (error: Error) => void;
  readonly scheduler?: SchedulerLike;
}

/**
 * The listeners of a primary. Nothing is read from their connections: each is given to the least loaded worker that
 * answers. Those on their way to a worker that dies are given to another one.
 */
export class ConnectionDispatch {
  readonly #options: ConnectionDispatchOptions;
  readonly #scheduler: SchedulerLike;
  readonly #subscription: Subscription;
  /** gRPC connections that wait for a worker, and what ends the wait of each. */
  readonly #waiting = new Map<Socket, Subscription>();
  /**
   * Connections for which no worker has room, by listener, so that a flood at one does not delay the other. Peers take
   * turns.
   */
  readonly #queues: Readonly<Record<ListenerName, FairQueue<Socket>>> = {
    grpc: new FairQueue(),
    http: new FairQueue(),
  };
  /** Sockets that are on their way to a worker. */
  readonly #given = new WeakSet<Socket>();
  readonly #taken = new Subject<unknown>();
  readonly #servers = new Map<ListenerName, Server>();
  #accepted = 0;

  constructor(options: ConnectionDispatchOptions) {
    this.#options = options;
    this.#scheduler = options.scheduler ?? asyncScheduler;
    this.#subscription = options.pool.serving$.subscribe((process) => this.#connect(process));
  }

  /**
   * Opens a listener.
   *
   * @param backlog how many connections may wait to be accepted; Node's default if undefined
   * @throws when the address cannot be listened on, with a human-readable message
   */
  listen(listener: ListenerName, at: TcpAddress, backlog?: number): Promise<AddressInfo>;
  listen(listener: ListenerName, at: ListenAddress, backlog?: number): Promise<AddressInfo | string>;
  async listen(listener: ListenerName, at: ListenAddress, backlog?: number): Promise<AddressInfo | string> {
    const server = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => this.accepted(listener, socket));
    const address = await listen(server, at, backlog);
    server.on('error', (error) => this.#options.onError(error));
    this.#servers.set(listener, server);
    return address;
  }

  /** The connections of a listener that are open or on their way to a worker. */
  count(listener: ListenerName): number {
    const waiting = this.#queues[listener].size + (listener === 'grpc' ? this.#waiting.size : 0);
    return this.#options.pool.workers.reduce((sum, { connections }) => sum + connections.load[listener], waiting);
  }

  get connections(): Connections {
    return { open: this.count('grpc') + this.count('http'), accepted: this.#accepted };
  }

  /**
   * A connection was accepted, and nothing was read from it. Those that wait the longest for a worker have to give way
   * to it.
   */
  accepted(listener: ListenerName, socket: Socket): void {
    this.#accepted += 1;
    socket.on('error', () => socket.destroy());
    if (!this.#makeRoom(listener, socket)) return;
    const accepted = performance.now();
    const given = this.#given;
    const isAdmitted = openFiles.admit(socket, listener, {
      get idleSince() {
        return given.has(socket) ? undefined : accepted;
      },
      wasUsed: false,
      giveWay: () => {
        this.#queues[listener].delete(socket);
        this.#refuse(listener, 'file_descriptors', socket);
      },
    });
    if (isAdmitted) this.#place(listener, socket);
    else this.#refuse(listener, 'file_descriptors', socket);
  }

  /**
   * Accepts no more connections of a listener. Resolves when none is on its way to a worker, or after a second: the
   * others do not wait for a worker that does not answer. Connections that wait for a worker are closed.
   */
  async stop(listener: ListenerName): Promise<void> {
    this.#servers.get(listener)?.close();
    const queue = this.#queues[listener];
    if (listener === 'grpc') for (const socket of [...this.#waiting.keys(), ...queue.clear()]) socket.destroy();
    const isSettled = () =>
      queue.size === 0 && this.#options.pool.workers.every(({ connections }) => connections.inTransit[listener] === 0);
    const late$ = timer(TAKEN_WITHIN, this.#scheduler);
    if (!isSettled()) await firstValueFrom(merge(this.#taken.pipe(filter(isSettled)), late$));
  }

  /** Ends what is left, when all workers have exited. */
  async close(): Promise<void> {
    this.#destroyWaiting();
    await this.#options.unavailable.close();
  }

  /** Stops listening and aborts every connection that no worker has. */
  abort(): void {
    for (const server of this.#servers.values()) server.close();
    this.#destroyWaiting();
    this.#options.unavailable.abort();
  }

  #destroyWaiting(): void {
    this.#subscription.unsubscribe();
    const { grpc, http } = this.#queues;
    for (const socket of [...this.#waiting.keys(), ...grpc.clear(), ...http.clear()]) socket.destroy();
  }

  /**
   * At the limit, a connection that waits gives way to one of a peer that has fewer. @returns false if it is refused
   */
  #makeRoom(listener: ListenerName, socket: Socket): boolean {
    const queue = this.#queues[listener];
    const count = listener === 'grpc' ? this.count('grpc') : queue.size;
    if (count < this.#options.maxConnections[listener]) return true;
    const displaced = queue.giveWayTo(turnOf(socket));
    this.#refuse(listener, queue.size > 0 ? 'hand_over' : 'connections', displaced ?? socket);
    return displaced !== undefined;
  }

  #refuse(listener: ListenerName, bound: ConnectionBound, socket: Socket): void {
    this.#options.onRefused(listener, bound, socket);
    socket.destroy();
  }

  #place(listener: ListenerName, socket: Socket): void {
    const worker = leastLoaded(this.#options.pool.workers, listener);
    if (worker === undefined && listener === 'http') this.#options.unavailable.adopt(socket);
    else if (worker === undefined) this.#wait(socket);
    else if (hasRoom(worker, listener)) this.#give(worker, listener, socket);
    else this.#queues[listener].add(turnOf(socket), socket);
  }

  #give({ connections }: WorkerProcess, listener: ListenerName, socket: Socket): void {
    if (!isReset(socket)) {
      this.#given.add(socket);
      return connections.give(listener, socket);
    }
    socket.destroy();
    return this.#options.onReset(listener);
  }

  /** Places connections of the queues until no worker has room. */
  #placeQueued(): void {
    for (const listener of ['http', 'grpc'] as const) {
      const queue = this.#queues[listener];
      while (queue.size > 0) {
        const worker = leastLoaded(this.#options.pool.workers, listener);
        if (worker !== undefined && !hasRoom(worker, listener)) break;
        this.#place(listener, queue.take() as Socket);
      }
    }
  }

  #wait(socket: Socket): void {
    const wait = timer(WAIT_FOR_WORKER, this.#scheduler).subscribe(() => socket.destroy());
    this.#waiting.set(socket, wait);
    socket.once('close', () => this.#endWait(socket));
  }

  #endWait(socket: Socket): void {
    this.#waiting.get(socket)?.unsubscribe();
    this.#waiting.delete(socket);
  }

  #connect({ connections, exited$ }: WorkerProcess): void {
    // oxlint-disable-next-line house-style/kept-subscriptions -- it emits nothing after the end of the worker
    connections.taken$.subscribe((taken) => {
      this.#placeQueued();
      this.#taken.next(taken);
    });
    // oxlint-disable-next-line house-style/kept-subscriptions -- completes with the process
    exited$.subscribe(() => {
      for (const [listener, socket] of connections.ended()) {
        this.#given.delete(socket);
        this.#place(listener, socket);
      }
    });
    for (const socket of [...this.#waiting.keys()]) {
      this.#endWait(socket);
      this.#place('grpc', socket);
    }
  }
}

/**
 * Whether the peer has reset a TCP connection from which nothing was read: the system has no address of it any more.
 */
function isReset(socket: Socket): boolean {
  return socket.destroyed || (socket.localAddress !== undefined && peerOf(socket) === undefined);
}

/**
 * The address of the peer; undefined on a Unix socket, and when the peer has reset the connection. Not `remoteAddress`
 * where Node has the field of a TCP socket that is not documented: that keeps its first answer.
 */
function peerOf(socket: Socket): string | undefined {
  const { _handle: handle } = socket as InnerSocket;
  if (typeof handle?.getpeername !== 'function') return socket.remoteAddress;
  const name: { address?: string } = {};
  handle.getpeername(name);
  return name.address;
}

interface InnerSocket {
  readonly _handle?: { readonly getpeername?: (name: { address?: string }) => unknown } | null;
}

/** How many bits the networks have that one host may have. */
const NETWORK_OF_HOST = { ipv4: 32, ipv6: 64 };

/**
 * Whose turn a connection takes: that of its peer's IPv4 address or /64 network. All peers of Unix sockets take one.
 */
function turnOf(socket: Socket): string {
  return countedAddress(peerOf(socket) ?? '', NETWORK_OF_HOST);
}

type LoadedWorker = Pick<WorkerProcess, 'isServing' | 'isResponsive'> & {
  readonly connections: Pick<WorkerConnections, 'load' | 'inTransit'>;
};

function hasRoom({ connections }: LoadedWorker, listener: ListenerName): boolean {
  return connections.inTransit[listener] < MAX_IN_TRANSIT;
}

/**
 * The worker to give a connection to: of those that answer, or of all that serve when none does, and then of those that
 * have room, the one with the fewest connections of that listener, of several the one with the fewest in all, of
 * several the first. Undefined when none serves.
 */
export function leastLoaded<W extends LoadedWorker>(workers: readonly W[], listener: ListenerName): W | undefined {
  const [best] = workers
    .filter(({ isServing }) => isServing)
    .toSorted((one, other) => {
      const [load, others] = [one.connections.load, other.connections.load];
      return (
        Number(other.isResponsive) - Number(one.isResponsive) ||
        Number(hasRoom(other, listener)) - Number(hasRoom(one, listener)) ||
        load[listener] - others[listener] ||
        load.grpc + load.http - others.grpc - others.http
      );
    });
  return best;
}
