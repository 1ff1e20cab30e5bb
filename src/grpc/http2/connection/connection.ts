import { ConnectionError } from '../protocol';
import type { FrameReader } from '../frames/frame-reader';
import { ErrorCode } from '../protocol';
import type { Limits } from '../limits/limits';
import type { Peer, Rejection } from '../limits/rejections';
import type { Transport } from '../streams/connection-control';
import type { RunQueue } from '../streams/run-queue';
import type { SendQueue } from '../streams/send-queue';
import type { Stream } from '../streams/stream';
import type { Streams } from '../streams/streams';
import type { BackPressure } from './back-pressure';
import type { ConnectionContext } from './connection-context';
import { type PartsControl, connectionParts } from './connection-parts';
import type { GracefulShutdown } from './graceful-shutdown';
import type { HeaderFrames } from './header-frames';
import type { Keepalive } from './keepalive';
import type { SettingsExchange } from './settings-exchange';
import type { TurnTask } from './turn-queue';

/**
 * The server side of one HTTP/2 connection (RFC 9113). It reads no clock and owns neither a timer nor a socket: its input is
 * {@link receive} and {@link tick}, its output goes to the {@link Transport}. What its parts are is in {@link connectionParts}.
 */
export class Connection<M, S> implements TurnTask, PartsControl<S> {
  readonly #context: ConnectionContext<M, S>;
  readonly #limits: Limits;
  readonly #transport: Transport;
  readonly #sendQueue: SendQueue<S>;
  readonly #runQueue: RunQueue<S>;
  readonly #streams: Streams<S>;
  readonly #settings: SettingsExchange<S>;
  readonly #headers: HeaderFrames<M, S>;
  readonly #shutdown: GracefulShutdown<S>;
  readonly #keepalive: Keepalive;
  readonly #backPressure: BackPressure;
  readonly #reader: FrameReader;

  now: number;
  hasEnded = false;
  /** Streams to run wait until the chunk has been read. */
  #isReceiving = true;
  /** Output is written when the present call of a method ends, so that no other end of the turn has to be requested. */
  #willFlush = true;
  #isRunScheduled = false;
  #isTransportClosed = false;
  /** No deadline is earlier. */
  #nextWake = 0;
  /** When the transport is destroyed, after the connection has ended. */
  #lingerDeadline = Infinity;

  /** `prefaceMs`: the part of {@link Limits.prefaceMs} that is left. */
  constructor(context: ConnectionContext<M, S>, transport: Transport, prefaceMs = context.limits.prefaceMs) {
    this.#context = context;
    this.#limits = context.limits;
    this.#transport = transport;
    this.now = context.now();

    const parts = connectionParts(this, context, transport, prefaceMs);
    this.#sendQueue = parts.sendQueue;
    this.#runQueue = parts.runQueue;
    this.#streams = parts.streams;
    this.#settings = parts.settings;
    this.#headers = parts.headers;
    this.#shutdown = parts.shutdown;
    this.#keepalive = parts.keepalive;
    this.#backPressure = parts.backPressure;
    this.#reader = parts.reader;

    // Sent immediately: clients wait for our SETTINGS before they call.
    this.#settings.sendOurs();
    this.#isReceiving = false;
    this.flush();
    this.#willFlush = false;
  }

  get peer(): Peer {
    return this.#transport;
  }

  /** How many streams wait because the process has more work than time. */
  get waitingStreams(): number {
    return this.#runQueue.waiting;
  }

  // ---------------------------------------------------------------- input

  /** Receives bytes from the peer. The connection owns the chunk from then on. */
  receive(chunk: Buffer): void {
    if (this.hasEnded) return;
    this.now = this.#context.now();
    this.#keepalive.received(this.now);
    this.#isReceiving = true;
    this.#willFlush = true;
    try {
      this.#reader.read(chunk);
    } catch (error) {
      if (error instanceof ConnectionError) this.fail(error.code, error.rejection, error.message);
      else this.#failInternally(error);
    }
    this.#isReceiving = false;
    this.#endTurn();
  }

  /** The socket has sent everything that was written. */
  drained(): void {
    this.#backPressure.drained();
    if (this.#isTransportClosed) return;
    this.now = this.#context.now();
    this.#willFlush = true;
    this.#backPressure.resume();
    this.#endTurn();
  }

  /** The peer has closed its side or the whole socket: no response can be sent any more. */
  transportClosed(): void {
    this.hasEnded = true;
    this.#isTransportClosed = true;
    this.#cancelStreams();
  }

  // ---------------------------------------------------------------- deadlines

  /** Checks the deadlines. Must be called several times a second. */
  tick(now: number): void {
    if (now < this.#nextWake || this.#isTransportClosed) return;
    this.now = now;
    this.#nextWake = Infinity;
    this.#checkDeadlines(now);
    if (this.#sendQueue.hasWaiting) this.#nextWake = 0;
    this.flush();
    this.wakeAt(
      Math.min(
        this.#lingerDeadline,
        this.#settings.deadline,
        this.#headers.deadline,
        this.#backPressure.deadline,
        this.#keepalive.deadline,
        this.#shutdown.deadline,
        this.#streams.deadline,
      ),
    );
  }

  wakeAt(time: number): void {
    if (time < this.#nextWake) this.#nextWake = time;
  }

  #checkDeadlines(now: number): void {
    const shutdown = this.#shutdown;
    if (now >= this.#lingerDeadline) return this.#destroy();
    this.#settings.check(now);
    this.#headers.check(now);
    if (this.hasEnded) return;
    if (shutdown.isAbortDue(now)) return this.abort(shutdown.reason);
    if (this.#backPressure.isStuck(now)) return this.#destroy('slow_reader');
    if (!this.#keepalive.isAlive(now, this.#backPressure.isPaused)) this.#destroy('keepalive_timeout');
    shutdown.check(now);
    this.#sendQueue.pump(true);
    this.#streams.check(now);
  }

  // ---------------------------------------------------------------- turns

  #endTurn(): void {
    if (!this.hasEnded) {
      this.#sendQueue.pumpIfWidened();
      if (!this.#isRunScheduled) this.#runQueue.run();
    }
    this.flush();
    this.#willFlush = false;
  }

  runScheduled(): void {
    this.#isRunScheduled = false;
    this.now = this.#context.now();
    this.#runQueue.run();
  }

  runLater(): void {
    if (this.#isReceiving || this.#isRunScheduled) return;
    this.#isRunScheduled = true;
    this.#context.runLater(this);
  }

  outputBegan(): void {
    if (!this.#willFlush) this.#context.flushLater(this);
  }

  flush(): void {
    if (this.#isTransportClosed) return;
    this.#sendQueue.flush();
    if (this.hasEnded || !this.#sendQueue.exceedsSoftLimit) return;
    if (this.#sendQueue.unsent > this.#limits.hardOutputBytes) return this.#destroy('slow_reader');
    this.now = this.#context.now();
    this.#backPressure.pause();
  }

  // ---------------------------------------------------------------- notifications of its parts

  mayControl(): boolean {
    if (this.#sendQueue.mayControl()) return true;
    this.fail(ErrorCode.ENHANCE_YOUR_CALM, 'control_flood', 'answers to control frames are not read');
    return false;
  }

  responseEnded(stream: Stream<S>): void {
    this.#streams.responseEnded(stream);
  }

  outputDrained(stream: Stream<S>): void {
    this.#context.application.drained(stream);
  }

  outputOverflowed(): void {
    if (!this.#isTransportClosed) this.#destroy('slow_reader');
  }

  becameIdle(): void {
    this.#shutdown.becameIdle();
  }

  rejected(kind: Rejection, reason = ''): void {
    this.#context.rejected(kind, this.#transport, reason);
  }

  // ---------------------------------------------------------------- ending

  /**
   * Shuts down gracefully: see {@link GracefulShutdown}. `reason` becomes the debug data of GOAWAY. The streams that are open
   * `graceMs` after the final GOAWAY are reset.
   */
  shutDown(reason: string, graceMs = Infinity): void {
    if (this.hasEnded || this.#shutdown.hasBegun) return;
    this.now = this.#context.now();
    this.#shutdown.begin(reason, graceMs);
    this.flush();
  }

  /** Ends now: open streams are reset. `reason` becomes the debug data of GOAWAY. */
  abort(reason: string): void {
    if (this.hasEnded) return;
    this.now = this.#context.now();
    this.#streams.writeResets(ErrorCode.CANCEL);
    this.#endWith(ErrorCode.NO_ERROR, reason);
  }

  fail(code: ErrorCode, rejection: Rejection, message: string): void {
    if (this.hasEnded) return;
    this.rejected(rejection, message);
    this.#endWith(code, message);
  }

  #failInternally(error: unknown): void {
    this.#context.internalError(error);
    if (!this.hasEnded) this.#endWith(ErrorCode.INTERNAL_ERROR, 'internal error');
  }

  #endWith(code: ErrorCode, message: string): void {
    this.#sendQueue.writer.goaway(this.#streams.ids.lastProcessed, code, message);
    this.end();
  }

  /**
   * Sends the frames written so far and ends our side of the socket, but reads for another {@link Limits.lingerMs}: the kernel
   * resets a socket that is closed with unread input, and the peer would lose our last frames.
   */
  end(): void {
    this.hasEnded = true;
    this.#cancelStreams();
    this.#sendQueue.close();
    this.#backPressure.resume();
    this.#transport.end();
    // A response that ends the connection may follow long after the last input.
    this.#lingerDeadline = this.#context.now() + this.#limits.lingerMs;
    this.#nextWake = 0;
  }

  #destroy(rejection?: Rejection): void {
    if (rejection !== undefined) this.rejected(rejection);
    this.transportClosed();
    this.#transport.destroy();
  }

  #cancelStreams(): void {
    this.#streams.cancelAll();
    this.#headers.discardBlock();
  }
}
