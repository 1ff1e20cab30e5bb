import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { AsyncSubject, type Observable, asyncScheduler, fromEvent, share, takeUntil } from 'rxjs';
import type { Health } from '../../streams/readiness';
import { jsonFrames, sendJson } from '../channel/json-frames';
import { StreamChannel } from '../channel/stream-channel';
import { TOPICS } from '../channel/topics';
import type { Order, Passed, Report, SocketNotice, WorkerState } from '../messages';
import { workerArguments } from '../worker/role';
import { workerExecArguments } from './exec-arguments';
import { type Responsiveness, responsiveness } from './responsiveness';

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

/** A worker, seen from the primary. */
export class WorkerProcess {
  readonly channel: StreamChannel;
  readonly reports$: Observable<Report>;
  readonly states$: Observable<WorkerState>;
  /** Over the IPC channel, which carries sockets and nothing else in the other direction: messages queue behind sockets. */
  readonly notices$: Observable<SocketNotice>;
  /** Emits once, when the process has ended and everything that it sent has been received; then completes. */
  readonly exited$: Observable<WorkerExit>;
  /** While it is subscribed to, the worker is asked. Completes when the process has ended. */
  readonly responsiveness$: Observable<Responsiveness>;
  readonly #child: ChildProcess;
  #connections = 0;

  /**
   * @param number from 1; a replacement has the number of its predecessor
   * @throws when too many files are open
   */
  constructor(
    readonly number: number,
    { program, environment }: ForkOptions,
  ) {
    const child = fork(program, workerArguments(number), {
      env: environment,
      execArgv: [
        ...workerExecArguments(number, {
          execArgv: process.execArgv,
          nodeOptions: environment['NODE_OPTIONS'],
          debugPort: process.debugPort,
        }),
      ],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe'],
    });
    this.#child = child;
    // First: an 'error' event without a listener would end the primary, also after this constructor has thrown.
    this.exited$ = exitOf(child);
    this.channel = new StreamChannel(channelPipe(child));
    this.reports$ = jsonFrames<Report>(this.channel, TOPICS.control).pipe(share());
    this.states$ = jsonFrames<WorkerState>(this.channel, TOPICS.health).pipe(share());
    // The event has a second argument, the handle.
    this.notices$ = fromEvent(child, 'message', (message) => message as SocketNotice).pipe(share());
    this.responsiveness$ = responsiveness({
      ask: () => this.order({ kind: 'ping' }),
      // Whatever it reports, it lives.
      answers$: this.reports$,
      scheduler: asyncScheduler,
    }).pipe(takeUntil(this.exited$), share());
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the process
    this.notices$.subscribe((notice) => {
      if ('closed' in notice) this.#connections -= 1;
    });
  }

  /** The connections that it has, or that are on their way to it. */
  get connections(): number {
    return this.#connections;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Begins to read from the channel, when its topics have their subscribers. */
  start(): void {
    this.channel.start();
  }

  order(order: Order): void {
    sendJson(this.channel, TOPICS.control, order);
  }

  /** Informs the worker of the health of the instance. */
  inform(health: Health): void {
    sendJson(this.channel, TOPICS.health, health);
  }

  /**
   * Sends a copy of a socket. The own one must be destroyed when the worker has `taken` it, and not before: a copy that is on its way
   * to a process that dies is lost.
   */
  pass(passed: Passed, socket: Socket): void {
    this.#connections += 1;
    // A failure is followed by the end of the worker.
    this.#child.send({ ...passed }, socket, { keepOpen: true }, () => undefined);
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

function channelPipe(child: ChildProcess): Duplex {
  // Not in the type: with too many open files, `fork` returns a child without any stream and emits the error on the next tick.
  const stdio = child.stdio as ChildProcess['stdio'] | undefined;
  if (stdio === undefined) {
    throw new Error('too many open files in this process or on this machine (EMFILE or ENFILE)');
  }
  return stdio[4] as Duplex;
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
