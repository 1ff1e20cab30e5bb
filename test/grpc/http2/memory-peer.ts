import { Connection, type ConnectionContext } from '../../../src/grpc/http2/connection/connection';
import { HeaderBlockReader } from '../../../src/grpc/http2/headers/header-blocks';
import { DEFAULT_LIMITS, type Limits } from '../../../src/grpc/http2/limits/limits';
import type { Rejection } from '../../../src/grpc/http2/limits/rejections';
import type { Transport } from '../../../src/grpc/http2/streams/connection-control';
import { type Frame, parseFrames } from './frames';
import { TestApplication } from './test-application';

/** A transport that takes what the test lets it take. */
class MemoryTransport implements Transport {
  sent: Buffer[] = [];
  isPaused = false;
  isEnded = false;
  isDestroyed = false;
  /** Whether the peer reads: if not, everything waits. */
  isRead = true;
  writableLength = 0;

  write(bytes: Uint8Array): void {
    // A socket reports this as an error, and is destroyed before its last words are out.
    if (this.isEnded) throw new Error('write after end');
    this.sent.push(Buffer.from(bytes));
    if (!this.isRead) this.writableLength += bytes.length;
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

/** How bytes reach the connection. */
export type Cut = 'in one chunk' | 'byte by byte' | number;

/** A connection without a socket, its time and its turns in the test's hand. */
export class MemoryPeer {
  readonly transport = new MemoryTransport();
  readonly rejections: Rejection[] = [];
  readonly internalErrors: unknown[] = [];
  time = 1_000;
  readonly connection: Connection<string, never>;
  #toFlush = false;
  #toRun = false;
  #seen = 0;
  readonly context: ConnectionContext<string, never>;

  constructor(
    limits: Partial<Limits> = {},
    readonly application: TestApplication = new TestApplication(),
    headerBlocks?: HeaderBlockReader<string>,
  ) {
    const all = { ...DEFAULT_LIMITS, ...limits };
    this.context = {
      application,
      limits: all,
      headerBlocks: headerBlocks ?? new HeaderBlockReader(application, all),
      held: 0,
      now: () => this.time,
      rejected: (kind) => this.rejections.push(kind),
      internalError: (error) => this.internalErrors.push(error),
      flushLater: () => {
        this.#toFlush = true;
      },
      runLater: () => {
        this.#toRun = true;
      },
    };
    this.connection = new Connection(this.context, this.transport);
  }

  /** Hands bytes over, cut as told: a number is where to cut in two. */
  send(bytes: Buffer, cut: Cut = 'in one chunk'): this {
    // Each chunk is a copy, as each read of a socket is: what the server keeps of it must not change under it.
    if (cut === 'in one chunk') this.connection.receive(Buffer.from(bytes));
    else if (cut === 'byte by byte') for (const byte of bytes) this.connection.receive(Buffer.from([byte]));
    else {
      this.connection.receive(Buffer.from(bytes.subarray(0, cut)));
      this.connection.receive(Buffer.from(bytes.subarray(cut)));
    }
    return this.endTurns();
  }

  /** Lets turns of the event loop pass until nothing is left to do. */
  endTurns(): this {
    while (this.#toFlush || this.#toRun) {
      const run = this.#toRun;
      this.#toFlush = false;
      this.#toRun = false;
      if (run) this.connection.runScheduled();
      this.connection.flush();
    }
    return this;
  }

  /** Lets time pass, with ticks in between. */
  wait(ms: number, step = 50): this {
    const until = this.time + ms;
    while (this.time < until) {
      this.time = Math.min(until, this.time + step);
      this.connection.tick(this.time);
      this.endTurns();
    }
    return this;
  }

  /** The peer reads all that waits. */
  readAll(): this {
    this.transport.writableLength = 0;
    this.connection.drained();
    return this.endTurns();
  }

  get frames(): Frame[] {
    return parseFrames(Buffer.concat(this.transport.sent)).frames;
  }

  /** What was sent since the last call. */
  get newFrames(): Frame[] {
    const { frames } = this;
    const fresh = frames.slice(this.#seen);
    this.#seen = frames.length;
    return fresh;
  }
}
