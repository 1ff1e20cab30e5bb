import { Connection, type ConnectionContext } from '../../../src/grpc/http2/connection';
import { HeldBytes } from '../../../src/grpc/http2/held-bytes';
import { DEFAULT_LIMITS, type Limits, type Rejection } from '../../../src/grpc/http2/limits';
import type { Transport } from '../../../src/grpc/http2/output';
import { WorkPacing } from '../../../src/grpc/http2/run-queue';
import { FlushScheduler } from '../../../src/grpc/http2/flush-scheduler';
import { type Frame, hello, parseFrames } from './frames';
import { TestApplication } from './test-application';

/** A transport in memory whose peer reads only if the test permits it. */
class MemoryTransport implements Transport {
  sent: Buffer[] = [];
  isPaused = false;
  isEnded = false;
  isDestroyed = false;
  /** Whether the peer reads. If not, all output waits. */
  isRead = true;
  /** Whether output is accepted only when the turn has ended, as with TLS. */
  isLate = false;
  writableLength = 0;

  write(bytes: Uint8Array): void {
    // A socket reports this as an error, and is destroyed before its last bytes are sent.
    if (this.isEnded) throw new Error('write after end');
    this.sent.push(Buffer.from(bytes));
    if (!this.isRead || this.isLate) this.writableLength += bytes.length;
  }
  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
  end(): void {
    this.isEnded = true;
  }
  destroy(): void {
    this.isDestroyed = true;
  }
}

/** The turns of the real event loop, on a clock that the test moves. */
export class EventLoop {
  time = 1_000;
  /** How often the clock was read. */
  reads = 0;
  readonly turns = new FlushScheduler(() => this.now());

  now(): number {
    this.reads += 1;
    return this.time;
  }
}

interface Options {
  readonly application?: TestApplication;
  /** Another connection of the same server. */
  readonly beside?: MemoryPeer | undefined;
  /** If absent, a turn ends with each chunk that is sent. */
  readonly eventLoop?: EventLoop;
}

/** How bytes are split into chunks. A number is the position at which they are split in two. */
export type Cut = 'in one chunk' | 'byte by byte' | number;

/** A connection without a socket: bytes into it, and out of it. The test controls its clock and its turns. */
export class MemoryPeer {
  readonly transport = new MemoryTransport();
  readonly rejections: Rejection[] = [];
  readonly internalErrors: unknown[] = [];
  readonly application: TestApplication;
  time = 1_000;
  /** Whether the process has more work than time. */
  isBusy = false;
  /** Whether what is sent is left for the next turn. */
  isTurnOver = false;
  #idle = 0;
  readonly #connection: Connection;
  readonly #context: ConnectionContext;
  #toFlush = false;
  #toRun = false;

  constructor(limits: Partial<Limits> = {}, { beside, eventLoop, ...options }: Options = {}) {
    const all = { ...DEFAULT_LIMITS, ...limits };
    this.application = options.application ?? beside?.application ?? new TestApplication();
    const shared = beside && beside.#context;
    this.time = beside?.time ?? this.time;
    this.#context = {
      limits: all,
      interpreter: this.application,
      heldBytes: shared?.heldBytes ?? new HeldBytes(all),
      openStreams: 0,
      streamingCalls: 0,
      pacing: shared?.pacing ?? new WorkPacing(all, { idle: () => this.#idle }, this.time),
      now: () => eventLoop?.now() ?? this.time,
      rejected: (kind) => this.rejections.push(kind),
      internalError: (error) => this.internalErrors.push(error),
      flushLater: (task) => {
        if (eventLoop === undefined) this.#toFlush = true;
        else eventLoop.turns.flushLater(task);
      },
      isTurnOver: (now) => eventLoop?.turns.isOver(now) ?? this.isTurnOver,
      runLater: (task) => {
        if (eventLoop === undefined) this.#toRun = true;
        else eventLoop.turns.runLater(task);
      },
    };
    this.#connection = new Connection(this.#context, this.transport);
  }

  /** Sends bytes to the server. */
  send(bytes: Buffer, cut: Cut = 'in one chunk'): this {
    if (cut === 'in one chunk') this.receive(bytes);
    else if (cut === 'byte by byte') for (const byte of bytes) this.receive(Buffer.from([byte]));
    else this.receive(bytes.subarray(0, cut)).receive(bytes.subarray(cut));
    return this.endTurns();
  }

  /** Sends bytes in a chunk, after which the turn continues. */
  receive(bytes: Buffer): this {
    // A copy, as with a socket: the bytes must not change while the server keeps them.
    this.#connection.receive(Buffer.from(bytes));
    return this;
  }

  /** Ends turns of the event loop until nothing is left to do. */
  endTurns(): this {
    while (this.#toFlush || this.#toRun) {
      const run = this.#toRun;
      this.#toFlush = false;
      this.#toRun = false;
      if (run) this.#connection.runScheduled();
      this.#connection.flush();
    }
    if (this.transport.isRead && this.transport.isLate) this.transport.writableLength = 0;
    return this;
  }

  /** Advances the clock, with ticks every `step` milliseconds. */
  wait(ms: number, step = 50): this {
    const until = this.time + ms;
    while (this.time < until) {
      this.time = Math.min(until, this.time + step);
      if (!this.isBusy) this.#idle += step;
      this.#context.pacing.check(this.time);
      this.#context.heldBytes.check(this.time);
      this.#connection.tick(this.time);
      this.endTurns();
    }
    return this;
  }

  /** The peer reads all output that is waiting. */
  readAll(): this {
    this.transport.writableLength = 0;
    this.#connection.drained();
    return this.endTurns();
  }

  /** Answers the first `count` of the requests that are held. */
  finish(count = 1, text = 'done'): this {
    for (const call of this.application.held.splice(0, count)) this.application.finish(call, text);
    return this.endTurns();
  }

  /** Begins a graceful shutdown, as when the server stops. */
  drain(): this {
    this.#connection.drain();
    return this.endTurns();
  }

  /** Ends the connection, with what a call gets that is cut. */
  abort(): this {
    this.#connection.abort('');
    return this.endTurns();
  }

  /** Ends its half of the socket. */
  endHalf(): this {
    this.#connection.peerEnded();
    return this.endTurns();
  }

  /** The socket is closed. */
  close(): this {
    this.#connection.transportClosed();
    return this;
  }

  get hasEnded(): boolean {
    return this.#connection.hasEnded;
  }
  /** Bytes of incomplete requests that are kept on all connections of the server. */
  get heldBytes(): number {
    return this.#context.heldBytes.total;
  }
  /** Bytes that have arrived and are not read on all connections of the server. */
  get unreadBytes(): number {
    return this.#context.pacing.unreadBytes;
  }
  /** The requests that wait because the process has more work than time. */
  get waiting(): number {
    return this.#connection.waitingStreams;
  }
  /** All frames that the server has sent. */
  get frames(): Frame[] {
    return parseFrames(Buffer.concat(this.transport.sent)).frames;
  }
}

/** A connection whose client has begun as it should. */
export function connected(limits: Partial<Limits> = {}, options: Options = {}): MemoryPeer {
  return new MemoryPeer(limits, options).send(hello());
}
