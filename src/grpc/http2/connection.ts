import { ConnectionDeadlines } from './connection-deadlines';
import { Frames } from './frames';
import type { RequestInterpreter } from './header-reader';
import { Input } from './input';
import { LIMITS, type Rejection } from './limits';
import { Output, type Transport } from './output';
import { ConnectionError, DEFAULT_WINDOW_BYTES, ErrorCode, Setting } from './protocol';
import { Streams, type StreamsContext } from './streams';

/** What a connection uses of its server. */
export interface ConnectionContext extends StreamsContext {
  readonly interpreter: RequestInterpreter;
  /** Reports an internal error. The connection on which it occurred is ended. */
  internalError(error: unknown): void;
  /** Requests a call of {@link Connection.flush} at the end of this turn. */
  flushLater(connection: Connection): void;
  /** Requests a call of {@link Connection.runScheduled} in the next turn. */
  runLater(connection: Connection): void;
  /**
   * Whether what arrives at this time must wait for the next turn, by {@link runLater}, as this one has lasted long
   * enough.
   */
  isTurnOver(now: number): boolean;
}

/** Bytes from the peer, and when they arrived. */
interface Chunk {
  readonly bytes: Buffer;
  readonly arrived: number;
}

/**
 * The server side of one HTTP/2 connection (RFC 9113): its turns and its end. It reads no clock and owns neither a
 * timer nor a socket: its input is {@link receive} and {@link tick}, its output goes to the {@link Transport}.
 */
export class Connection {
  readonly #context: ConnectionContext;
  readonly #transport: Transport;
  readonly #deadlines: ConnectionDeadlines;
  readonly #input = new Input();
  readonly #output: Output;
  readonly #streams: Streams;
  readonly #frames: Frames;
  /** Streams to run wait until the chunk has been read. */
  #isReceiving = true;
  /** Output is written when the present call of a method ends, so that no other end of the turn has to be requested. */
  #willFlush = true;
  #isRunScheduled = false;
  /** What waits to be read, because a turn was over, or because enough streams wait to run. */
  readonly #unread: Chunk[] = [];
  #unreadBytes = 0;
  /** Some of it has waited with streams: see {@link RunQueue.hasBacklog}. */
  #isUnreadBacklog = false;
  #hasPeerEnded = false;
  #isTransportClosed = false;

  /** @param prefaceMs the part of {@link LIMITS.prefaceMs} that is left */
  constructor(context: ConnectionContext, transport: Transport, prefaceMs: number = LIMITS.prefaceMs) {
    this.#context = context;
    this.#transport = transport;
    this.#deadlines = new ConnectionDeadlines(context.now(), context.limits, prefaceMs);
    this.#output = new Output(transport, context.limits, context.now, () => this.#outputBegan());
    this.#streams = new Streams(context, transport, this.#deadlines, this.#output, () => this.#runLater());
    this.#frames = new Frames(context.interpreter, this.#input, this.#deadlines, this.#output, this.#streams);

    // Sent immediately: clients wait for our SETTINGS before they call.
    const { writer } = this.#output;
    writer.settings([
      [Setting.MAX_CONCURRENT_STREAMS, context.limits.maxConcurrentStreams],
      [Setting.MAX_HEADER_LIST_SIZE, LIMITS.maxHeaderListBytes],
      [Setting.NO_RFC7540_PRIORITIES, 1],
    ]);
    writer.windowUpdate(0, LIMITS.connectionWindowBytes - DEFAULT_WINDOW_BYTES);
    this.#isReceiving = false;
    this.flush();
    this.#willFlush = false;
  }

  /** The connection has ended, but may still be read: see {@link LIMITS.lingerMs}. */
  get hasEnded(): boolean {
    return this.#deadlines.hasEnded;
  }

  /** Since when nothing has arrived, on a connection without streams; undefined on one with streams. */
  get idleSince(): number | undefined {
    return this.#streams.table.size > 0 || this.#unread.length > 0 ? undefined : this.#deadlines.lastRead;
  }

  /** How many streams wait because the process has more work than time. */
  get waitingStreams(): number {
    return this.#streams.runQueue.waiting;
  }

  // ---------------------------------------------------------------- events of the socket and the clock

  /** Receives bytes from the peer. The connection owns the chunk from then on. */
  receive(chunk: Buffer): void {
    if (this.hasEnded) return;
    const now = this.#context.now();
    this.#deadlines.received(now);
    this.#countUnread(chunk.length);
    if (this.#unread.length === 0 && !this.#context.isTurnOver(now)) {
      this.#read(chunk, now);
      return this.#endTurn();
    }
    this.#unread.push({ bytes: chunk, arrived: now });
    if (this.#mayLeave) return;
    this.#transport.pause();
    this.#runLater();
  }

  /**
   * Whether what is unread may wait for streams to run. Only so much of it, so that the resets in it are not read too
   * late, and all of it together takes little memory; it arrives meanwhile, so that deadlines count from then on.
   */
  get #mayLeave(): boolean {
    if (!this.#streams.runQueue.isFull) return false;
    const { limits, pacing } = this.#context;
    const { maxUnreadBytes, maxUnreadBytesPerConnection } = limits;
    return this.#unreadBytes <= maxUnreadBytesPerConnection && pacing.unreadBytes <= maxUnreadBytes;
  }

  #countUnread(bytes: number): void {
    this.#unreadBytes += bytes;
    this.#context.pacing.unreadBytes += bytes;
  }

  /** Reads what has arrived at a time, or as much of it as may not be left. */
  #read(chunk: Buffer, arrived: number): void {
    const input = this.#input;
    const deadlines = this.#deadlines;
    deadlines.now = arrived;
    this.#isReceiving = true;
    this.#willFlush = true;
    try {
      input.receive(chunk, arrived);
      while (!deadlines.hasEnded && !this.#mayLeave && input.next()) {
        this.#frames.onFrame();
        this.#endIfExceeded();
      }
    } catch (error) {
      if (error instanceof ConnectionError) this.#fail(error.code, error.rejection, error.message);
      else this.#failInternally(error);
    }
    const rest = input.release();
    if (!deadlines.hasEnded) {
      this.#countUnread(rest.length - chunk.length);
      if (rest.length > 0) this.#unread.unshift({ bytes: rest, arrived });
    }
    deadlines.headerBlock = input.blockDeadline;
    deadlines.wakeAt(deadlines.headerBlock);
    this.#isReceiving = false;
  }

  /** The socket has sent everything that was written. */
  drained(): void {
    this.#deadlines.unread = Infinity;
    if (this.#isTransportClosed) return;
    this.#deadlines.now = this.#context.now();
    this.#willFlush = true;
    this.#output.resume();
    this.#endTurn();
  }

  /**
   * The peer has ended its half of the transport. What it has requested completely is answered, and then the connection
   * ends: at once when nothing is open, at the latest after {@link LIMITS.responseMs}.
   */
  peerEnded(): void {
    const deadlines = this.#deadlines;
    this.#hasPeerEnded = true;
    deadlines.now = this.#context.now();
    deadlines.abort = Math.min(deadlines.abort, deadlines.now + LIMITS.responseMs);
    deadlines.wakeAt(deadlines.abort);
    this.flush();
  }

  /** The transport is closed: no response can be sent any more. */
  transportClosed(): void {
    this.#deadlines.hasEnded = true;
    this.#isTransportClosed = true;
    this.#cancelStreams();
  }

  /** Checks the deadlines. Must be called several times a second. */
  tick(now: number): void {
    const deadlines = this.#deadlines;
    if (now < deadlines.nextWake || this.#isTransportClosed) return;
    deadlines.now = now;
    deadlines.nextWake = Infinity;
    this.#checkDeadlines(now);
    if (this.#output.waiting.size > 0) deadlines.nextWake = 0;
    this.flush();
    deadlines.wakeAt(deadlines.next());
  }

  #checkDeadlines(now: number): void {
    const deadlines = this.#deadlines;
    if (now >= deadlines.linger) return this.#destroy();
    if (deadlines.hasEnded) return;
    if (now >= deadlines.preface)
      return this.#fail(ErrorCode.SETTINGS_TIMEOUT, 'preface_timeout', 'no SETTINGS in time');
    if (now >= deadlines.settingsAck) {
      return this.#fail(ErrorCode.SETTINGS_TIMEOUT, 'settings_timeout', 'SETTINGS not acknowledged');
    }
    if (now >= deadlines.headerBlock) {
      return this.#fail(ErrorCode.ENHANCE_YOUR_CALM, 'header_timeout', 'header block not ended in time');
    }
    if (now >= deadlines.abort) return this.abort(deadlines.reason);
    if (now >= deadlines.unread) {
      if (!this.#output.hasProgressed()) return this.#destroy('slow_reader');
      deadlines.unread = now + LIMITS.unreadOutputMs;
    }
    if (!deadlines.keepsAlive(this.#output.writer, this.#output.isPaused)) return this.#destroy('keepalive_timeout');
    if (now >= deadlines.age) this.#shutDown('max_age', this.#context.limits.maxAgeGraceMs);
    if (now >= deadlines.final) this.#streams.finalize();
    this.#streams.pump(true);
    this.#streams.check();
  }

  // ---------------------------------------------------------------- turns

  #endTurn(): void {
    if (!this.hasEnded && this.#output.isPumpDue) {
      this.#output.isPumpDue = false;
      this.#streams.pump(false);
    }
    if (!this.#isRunScheduled) this.#run();
    this.flush();
    this.#willFlush = false;
  }

  #run(): void {
    const queue = this.#streams.runQueue;
    queue.run();
    if (this.#unread.length === 0) return;
    this.#isUnreadBacklog ||= queue.hasBacklog;
    if (!this.#mayLeave) this.#runLater();
  }

  /** Reads, or runs the streams, that earlier turns left. */
  runScheduled(): void {
    this.#isRunScheduled = false;
    const now = this.#context.now();
    this.#deadlines.now = now;
    const unread = this.#unread;
    if (unread.length > 0 && !this.#output.isPaused) this.#transport.resume();
    if (unread.length === 0 || this.#mayLeave) return this.#run();
    this.#streams.runQueue.hasBacklog ||= this.#isUnreadBacklog;
    do {
      const { bytes, arrived } = unread.shift()!;
      this.#read(bytes, arrived);
    } while (unread.length > 0 && !this.#mayLeave);
    if (unread.length === 0) this.#isUnreadBacklog = false;
    this.#deadlines.now = now;
    this.#endTurn();
  }

  #runLater(): void {
    if (this.#isReceiving || this.#isRunScheduled) return;
    this.#isRunScheduled = true;
    this.#context.runLater(this);
  }

  #outputBegan(): void {
    if (!this.#willFlush) this.#context.flushLater(this);
  }

  /** Ends the connection if it is to end, and writes the frames of the turn to the transport. */
  flush(): void {
    if (this.#isTransportClosed) return;
    this.#endIfExceeded();
    const hasReadAll = this.#hasPeerEnded && this.#unread.length === 0;
    if (hasReadAll) this.#streams.cancelUnfinished();
    if ((hasReadAll || this.#deadlines.isFinal) && this.#streams.table.size === 0 && !this.hasEnded) this.#end();
    const output = this.#output;
    output.flush();
    if (this.hasEnded) return;
    if (output.isOverflowing) return this.#destroy('slow_reader');
    if (!output.exceedsSoftLimit || output.isPaused) return;
    output.pause();
    this.#deadlines.unread = this.#context.now() + LIMITS.unreadOutputMs;
    this.#deadlines.wakeAt(this.#deadlines.unread);
  }

  // ---------------------------------------------------------------- ending

  /** The server stops: shuts down gracefully. Calls that stay open end with the final GOAWAY. */
  drain(): void {
    if (this.hasEnded) return;
    this.#deadlines.now = this.#context.now();
    this.#deadlines.isDraining = true;
    if (this.#deadlines.isFinal) this.#streams.stopCalls('drain');
    this.#shutDown('', Infinity);
    this.flush();
  }

  /** Shuts down gracefully: see {@link ConnectionDeadlines}. */
  #shutDown(reason: string, graceMs: number): void {
    if (!this.#deadlines.hasBegun) this.#deadlines.begin(this.#output.writer, reason, graceMs);
  }

  /** Ends now: calls that are open end without an answer. `reason` becomes the debug data of GOAWAY. */
  abort(reason: string): void {
    if (this.hasEnded) return;
    this.#deadlines.now = this.#context.now();
    this.#streams.stopCalls('grace');
    this.#endWith(ErrorCode.NO_ERROR, reason);
  }

  /** Ends a connection that has exceeded a limit on what peers may cost. */
  #endIfExceeded(): void {
    const { exceeded, message } = this.#output.abuse;
    if (exceeded !== undefined) this.#fail(ErrorCode.ENHANCE_YOUR_CALM, exceeded, message);
  }

  /** `message` becomes the debug data of GOAWAY. */
  #fail(code: ErrorCode, rejection: Rejection, message: string): void {
    if (this.hasEnded) return;
    this.#streams.rejected(rejection, message);
    this.#endWith(code, message);
  }

  #failInternally(error: unknown): void {
    this.#context.internalError(error);
    if (!this.hasEnded) this.#endWith(ErrorCode.INTERNAL_ERROR, 'internal error');
  }

  #endWith(code: ErrorCode, message: string): void {
    this.#output.writer.goaway(this.#streams.table.lastProcessed, code, message);
    this.#end();
  }

  /**
   * Sends the frames written so far and ends our side of the socket, but reads for another {@link Limits.lingerMs}: the
   * kernel resets a socket that is closed with unread input, and the peer would lose our last frames.
   */
  #end(): void {
    this.#deadlines.hasEnded = true;
    this.#cancelStreams();
    this.#output.close();
    this.#output.resume();
    // Input that waits has paused it, too.
    this.#transport.resume();
    this.#transport.end();
    // A response that ends the connection may follow long after the last input.
    this.#deadlines.linger = this.#context.now() + this.#context.limits.lingerMs;
    this.#deadlines.nextWake = 0;
  }

  #destroy(rejection?: Rejection): void {
    if (rejection !== undefined) this.#streams.rejected(rejection);
    this.transportClosed();
    this.#transport.destroy();
  }

  #cancelStreams(): void {
    this.#streams.cancelAll();
    this.#unread.length = 0;
    this.#countUnread(-this.#unreadBytes);
    this.#input.discardBlock();
    this.#deadlines.headerBlock = Infinity;
  }
}
