import { type ChildProcess, fork } from 'node:child_process';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import type { Duplex } from 'node:stream';
import { AsyncSubject, type Observable } from 'rxjs';
import type { Health } from '../streams/readiness';
import type { ShownServer } from '../streams/server-views';
import { Channel } from './channel';
import { WorkerConnections } from './connections';
import { workerArguments, workerExecArguments } from './role';

/** The certificates of the gRPC listener. */
export interface TlsTexts {
  readonly cert: string;
  readonly key: string;
  readonly clientCa: string | undefined;
  /** The name that clients' certificates must carry. */
  readonly clientName: string | undefined;
  /** The key of session tickets in Base64, the same in all workers: a client that reconnects meets any of them. */
  readonly ticketKeys: string;
}

/** What the primary requires of a worker: notifications of the topic `order`, but for `drain`, which is a request. */
export type Order =
  /** The health of the instance. */
  | { readonly kind: 'health'; readonly health: Health }
  /** How many instances share what is left of limits while the store does not count. */
  | { readonly kind: 'instances'; readonly count: number }
  /** The certificates to serve new connections with. */
  | { readonly kind: 'tls'; readonly tls: TlsTexts }
  /**
   * Ends the connections of callers gracefully and lets the calls in flight finish within these milliseconds; answered
   * when they have.
   */
  | { readonly kind: 'drain'; readonly within: number }
  /** No HTTP connection follows: ends everything else and exits. */
  | { readonly kind: 'finish' };

/** What is not the same in all workers. */
export interface WorkerState {
  /** Whether the counter store has been reached, and is now. */
  readonly isStoreReady: boolean;
  readonly isStoreConnected: boolean;
}

/** What a worker reports to the primary: notifications of the topic `report`. */
export type Report =
  | { readonly kind: 'state'; readonly state: WorkerState }
  /** All servers of the stores: at each change, and once a second. */
  | { readonly kind: 'servers'; readonly servers: readonly ShownServer[] }
  /** The worker takes connections. `store` describes its counter store, without credentials. */
  | { readonly kind: 'serving'; readonly store: string }
  /** The worker cannot run, and exits. */
  | { readonly kind: 'failed'; readonly reason: string };

/** The pipes of a worker, by file descriptor: the first after standard error and the IPC channel. */
export const PIPES = { channel: 4, pages: 5 } as const;

/** How a worker ended: with an exit code, by a signal, or because it could not be started. */
export interface WorkerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: Error;
}

export interface ForkOptions {
  /** The program: `dist/main.js`. */
  readonly program: string;
  /** The environment of the service. */
  readonly environment: NodeJS.ProcessEnv;
}

/** A worker that runs, seen from the primary. The pool changes what it knows of it, and emits its workers then. */
export class WorkerProcess {
  /** As last reported; undefined until its program runs. */
  state: WorkerState | undefined;
  /** The servers of the stores, as last reported. */
  servers: readonly ShownServer[] = [];
  /** Whether it takes connections. */
  isServing = false;
  /** False after ten seconds in which it did not answer. */
  isResponsive = true;
  /** The description of its counter store; undefined before it is serving. */
  store: string | undefined;
  readonly channel: Channel;
  readonly connections: WorkerConnections;
  readonly reports$: Observable<Report>;
  /** Emits once, when the process has ended and everything that it sent has been received; then completes. */
  readonly exited$: Observable<WorkerExit>;
  readonly startedAt = performance.now();
  readonly #child: ChildProcess;
  readonly #pages: ClientHttp2Session;
  #openPages = 0;

  /**
   * @param number from 1; a replacement has the number of its predecessor
   * @throws when too many files are open
   */
  constructor(
    readonly number: number,
    { program, environment }: ForkOptions,
  ) {
    const { execArgv, debugPort } = process;
    const child = fork(program, workerArguments(number), {
      env: environment,
      execArgv: [...workerExecArguments(number, { execArgv, nodeOptions: environment['NODE_OPTIONS'], debugPort })],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe', 'pipe'],
    });
    this.#child = child;
    // First: an 'error' event without a listener would end the primary, also after this constructor has thrown.
    this.exited$ = exitOf(child);
    // Not in the type: with too many open files, `fork` returns a child without any stream and emits the error on the
    // next tick.
    if ((child.stdio as ChildProcess['stdio'] | undefined) === undefined) {
      throw new Error('too many open files in this process or on this machine (EMFILE or ENFILE)');
    }
    // `stdio` has the type of a tuple of five.
    const stdio = child.stdio as unknown as readonly Duplex[];
    this.channel = new Channel(stdio[PIPES.channel]!);
    this.#pages = connect('http://worker', { createConnection: () => stdio[PIPES.pages]! });
    // Streams of pages fail when the worker ends, which its process reports.
    this.#pages.on('error', () => undefined);
    this.connections = new WorkerConnections(child);
    this.reports$ = this.channel.notifications<Report>('report');
  }

  /** Whether it decides calls and answers the primary. */
  get isReady(): boolean {
    return this.isServing && this.isResponsive;
  }

  /** Whether a profile or a heap snapshot of it is being taken, for which it may stand still. */
  get isRecorded(): boolean {
    return this.#openPages > 0;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  order(order: Order): void {
    this.channel.notify('order', order);
  }

  /**
   * Calls a method that it serves: see {@link Channel.request}. The result in a list, which is empty when there is
   * none.
   */
  call<Result>(method: string, parameters: unknown, timeoutMs?: number): Promise<readonly Result[]> {
    return this.channel.call<Result>(method, parameters, timeoutMs);
  }

  /** Removes a key from its local cache. */
  forget(cacheKey: string): void {
    this.channel.notify('forget', cacheKey);
  }

  /**
   * GET of a path with its query, over a connection of its own with HTTP/2: a profile takes minutes and may be long,
   * and others must not wait for it. When the worker ends, the stream closes with another code than 0, but not with an
   * error.
   */
  page(path: string): ClientHttp2Stream {
    const stream = this.#pages.request({ ':path': path });
    this.#openPages += 1;
    return stream.once('close', () => (this.#openPages -= 1));
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

function exitOf(child: ChildProcess): Observable<WorkerExit> {
  const exit$ = new AsyncSubject<WorkerExit>();
  function ended(exit: WorkerExit): void {
    exit$.next(exit);
    exit$.complete();
  }
  child.on('error', (error) => {
    // Any other error concerns a message to a process that has ended or will end.
    if (child.pid === undefined) ended({ code: null, signal: null, error });
  });
  child.once('close', (code, signal) => {
    // What the worker has sent before its end is still being read.
    if (child.connected) child.once('disconnect', () => ended({ code, signal }));
    else ended({ code, signal });
  });
  return exit$.asObservable();
}
