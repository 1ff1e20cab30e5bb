import { Connection } from '../../../src/grpc/http2/connection/connection';
import type { ConnectionContext } from '../../../src/grpc/http2/connection/connection-context';
import { HeaderBlockReader } from '../../../src/grpc/http2/headers/header-blocks';
import { DEFAULT_LIMITS, type Limits } from '../../../src/grpc/http2/limits/limits';
import type { Rejection } from '../../../src/grpc/http2/limits/rejections';
import type { Transport } from '../../../src/grpc/http2/streams/connection-control';
import { HeldBytes } from '../../../src/grpc/http2/streams/held-bytes';
import { WorkPacing } from '../../../src/grpc/http2/streams/work-pacing';
import { type Frame, parseFrames } from './frames';
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

/** How bytes are split into chunks. A number is the position at which they are split in two. */
export type Cut = 'in one chunk' | 'byte by byte' | number;

/** A connection without a socket. The test controls its clock and its turns. */
export class MemoryPeer {
  readonly transport = new MemoryTransport();
  readonly rejections: Rejection[] = [];
  readonly internalErrors: unknown[] = [];
  time = 1_000;
  /** Whether the process has more work than time. */
  isBusy = false;
  #idle = 0;
  readonly connection: Connection<string, never>;
  #toFlush = false;
  #toRun = false;
  readonly context: ConnectionContext<string, never>;

  constructor(
    limits: Partial<Limits> = {},
    readonly application: TestApplication = new TestApplication(),
    shared: Partial<ConnectionContext<string, never>> = {},
  ) {
    const all = { ...DEFAULT_LIMITS, ...limits };
    this.context = {
      application,
      limits: all,
      headerBlocks: new HeaderBlockReader(application, all),
      heldBytes: new HeldBytes(all),
      openStreams: 0,
      workPacing: new WorkPacing(all, { idle: () => this.#idle }, this.time),
      now: () => this.time,
      rejected: (kind) => this.rejections.push(kind),
      internalError: (error) => this.internalErrors.push(error),
      flushLater: () => {
        this.#toFlush = true;
      },
      runLater: () => {
        this.#toRun = true;
      },
      ...shared,
    };
    this.connection = new Connection(this.context, this.transport);
  }

  /** Sends bytes to the server. */
  send(bytes: Buffer, cut: Cut = 'in one chunk'): this {
    // Each chunk is a copy, as with a socket: the bytes must not change while the server keeps them.
    if (cut === 'in one chunk') this.connection.receive(Buffer.from(bytes));
    else if (cut === 'byte by byte') for (const byte of bytes) this.connection.receive(Buffer.from([byte]));
    else {
      this.connection.receive(Buffer.from(bytes.subarray(0, cut)));
      this.connection.receive(Buffer.from(bytes.subarray(cut)));
    }
    return this.endTurns();
  }

  /** Ends turns of the event loop until nothing is left to do. */
  endTurns(): this {
    while (this.#toFlush || this.#toRun) {
      const run = this.#toRun;
      this.#toFlush = false;
      this.#toRun = false;
      if (run) this.connection.runScheduled();
      this.connection.flush();
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
      this.context.workPacing.check(this.time);
      this.context.heldBytes.check(this.time);
      this.connection.tick(this.time);
      this.endTurns();
    }
    return this;
  }

  /** The peer reads all output that is waiting. */
  readAll(): this {
    this.transport.writableLength = 0;
    this.connection.drained();
    return this.endTurns();
  }

  get frames(): Frame[] {
    return parseFrames(Buffer.concat(this.transport.sent)).frames;
  }
}
