import { AbuseLimits } from '../limits/abuse-limits';
import { BackPressure } from './back-pressure';
import { DataFrames } from './data-frames';
import { GracefulShutdown } from './graceful-shutdown';
import { ConnectionError } from '../frames/errors';
import { FrameHandler } from './frame-handler';
import { FrameReader } from '../frames/frame-reader';
import { HeaderFrames } from './header-frames';
import { Keepalive } from './keepalive';
import type { Limits } from '../limits/limits';
import { SendQueue } from '../streams/send-queue';
import { PeerSettings } from '../frames/peer-settings';
import { ErrorCode } from '../frames/protocol';
import type { Refusal } from '../limits/refusals';
import { RunQueue } from '../streams/run-queue';
import type { ServerContext } from '../streams/server-context';
import { SettingsExchange } from './settings-exchange';
import type { Stream } from '../streams/stream';
import { Streams } from '../streams/streams';
import type { Transport } from '../streams/connection-control';

/** What a connection has of its server. */
export interface ConnectionContext<M, S> extends ServerContext<M, S> {
  /** Milliseconds, monotonic. */
  now(): number;
  /** A defect of ours: the connection it happened on has been ended. */
  crashed(error: unknown): void;
  /** Have {@link Connection.flush} called when this turn is over. */
  flushLater(connection: Connection<M, S>): void;
  /** Have {@link Connection.runScheduled} called in the next turn. */
  runLater(connection: Connection<M, S>): void;
}

/**
 * One HTTP/2 connection, server side (RFC 9113), from its first byte to its last. It reads no clock, owns no timer and no
 * socket: {@link receive} hands it what came, {@link tick} the time, {@link Transport} takes what it says.
 */
export class Connection<M, S> {
  readonly #context: ConnectionContext<M, S>;
  readonly #wire: Transport;
  now: number;
  isOver = false;

  readonly #limits: Limits;
  readonly #outflow: SendQueue<S>;
  readonly #queue: RunQueue<S>;
  readonly #streams: Streams<S>;
  readonly #settings: SettingsExchange<S>;
  readonly #headers: HeaderFrames<M, S>;
  readonly #departure: GracefulShutdown<S>;
  readonly #keepalive: Keepalive;
  readonly #backPressure: BackPressure;
  readonly #reader: FrameReader;

  /** Output written meanwhile leaves when it is over. */
  #isReceiving = true;
  #isGone = false;
  /** No deadline comes before this. */
  #nextWake = 0;
  /** Of the peer, to close a connection that we have ended. */
  #lingerDeadline = Infinity;

  /** `prefaceMs`: how much of {@link Limits.prefaceMs} is left. */
  constructor(context: ConnectionContext<M, S>, wire: Transport, prefaceMs = context.limits.prefaceMs) {
    this.#context = context;
    this.#wire = wire;
    const { limits, application } = context;
    this.#limits = limits;
    this.now = context.now();
    const peer = new PeerSettings();
    const allowances = new AbuseLimits(limits, (refusal, message) =>
      this.fail(ErrorCode.ENHANCE_YOUR_CALM, refusal, message),
    );
    const outflow = new SendQueue<S>(this, peer, allowances, wire, limits);
    const { writer } = outflow;
    this.#outflow = outflow;
    this.#queue = new RunQueue(this, application, outflow, limits.dispatchesPerTurn);
    this.#streams = new Streams(this, context, peer, outflow, allowances, this.#queue);
    const streams = this.#streams;
    this.#settings = new SettingsExchange(this, peer, streams, outflow, allowances, limits, prefaceMs);
    this.#headers = new HeaderFrames(this, context, streams, this.#settings, allowances);
    this.#departure = new GracefulShutdown(this, streams, writer, limits);
    this.#keepalive = new Keepalive(writer, limits, this.now);
    this.#backPressure = new BackPressure(this, outflow, wire, limits);
    const data = new DataFrames(this, context, streams, writer, allowances);
    const settings = this.#settings;
    const headers = this.#headers;
    const departure = this.#departure;
    this.#reader = new FrameReader(
      new FrameHandler(this, settings, headers, data, departure, streams, outflow, allowances),
    );

    // Clients wait for our SETTINGS before they call.
    this.#settings.sendOurs();
    this.#isReceiving = false;
    this.flush();
  }

  // ---------------------------------------------------------------- what the wire brings

  /** Bytes from the peer. The chunk is the connection's from here on. */
  receive(chunk: Buffer): void {
    if (this.isOver) return;
    this.now = this.#context.now();
    this.#keepalive.heard(this.now);
    this.#isReceiving = true;
    try {
      this.#reader.read(chunk);
    } catch (error) {
      if (error instanceof ConnectionError) this.fail(error.code, error.refusal, error.message);
      else this.#crash(error);
    }
    this.#isReceiving = false;
    this.#endTurn();
  }

  /** The socket took all that was written. */
  drained(): void {
    this.#backPressure.drained();
    if (this.#isGone) return;
    this.now = this.#context.now();
    this.#backPressure.resume();
    this.#endTurn();
  }

  /** The peer is gone, and with it whoever waits for answers. */
  wireClosed(): void {
    this.isOver = true;
    this.#isGone = true;
    this.#cancelStreams();
  }

  // ---------------------------------------------------------------- time

  /** Looks at the time. Called now and then, some ten times a second. */
  tick(now: number): void {
    if (now < this.#nextWake || this.#isGone) return;
    this.now = now;
    this.#nextWake = Infinity;
    this.#checkDeadlines(now);
    if (!this.isOver && this.#outflow.hasWaiting) {
      this.#outflow.pump(true);
      if (this.#outflow.hasWaiting) this.#nextWake = 0;
    }
    this.flush();
    this.wakeAt(
      Math.min(
        this.#lingerDeadline,
        this.#settings.deadline,
        this.#headers.deadline,
        this.#backPressure.deadline,
        this.#keepalive.deadline,
        this.#departure.deadline,
        this.#streams.deadline,
      ),
    );
  }

  wakeAt(time: number): void {
    if (time < this.#nextWake) this.#nextWake = time;
  }

  #checkDeadlines(now: number): void {
    const departure = this.#departure;
    if (now >= this.#lingerDeadline) return this.#destroy();
    this.#settings.check(now);
    this.#headers.check(now);
    if (this.isOver) return;
    if (departure.isCutDue(now)) return this.cut(departure.reason);
    if (this.#backPressure.isStuck(now)) return this.#destroy('slow_reader');
    if (!this.#keepalive.isAlive(now, this.#backPressure.isPaused)) this.#destroy('keepalive_timeout');
    departure.check(now);
    this.#streams.check(now);
  }

  // ---------------------------------------------------------------- turns

  #endTurn(): void {
    if (!this.isOver) {
      this.#outflow.pumpIfWidened();
      this.#queue.run();
    }
    this.flush();
  }

  /** Runs what was scheduled, within bounds of fairness. */
  runScheduled(): void {
    this.#queue.run();
  }

  runLater(): void {
    if (!this.#isReceiving) this.#context.runLater(this);
  }

  outputBegan(): void {
    if (!this.#isReceiving) this.#context.flushLater(this);
  }

  flush(): void {
    if (this.#isGone) return;
    this.#outflow.flush();
    if (this.isOver || !this.#outflow.isOverSoftLimit) return;
    if (this.#outflow.unsent > this.#limits.hardOutputBytes) this.#destroy('slow_reader');
    else this.#backPressure.pause();
  }

  // ---------------------------------------------------------------- what its parts tell it

  mayControl(): boolean {
    if (this.#outflow.mayControl()) return true;
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
    if (!this.#isGone) this.#destroy('slow_reader');
  }

  becameIdle(): void {
    this.#departure.becameIdle();
  }

  // ---------------------------------------------------------------- ends

  /** Ends gracefully, as {@link GracefulShutdown} has it. `reason` is for the peer's log. */
  leave(reason: string, graceMs = Infinity): void {
    if (this.isOver || this.#departure.hasBegun) return;
    this.now = this.#context.now();
    this.#departure.announce(reason, graceMs);
    this.flush();
  }

  /** Ends now: what is open is reset. */
  cut(reason: string): void {
    if (this.isOver) return;
    this.now = this.#context.now();
    this.#streams.writeResets(ErrorCode.CANCEL);
    this.#end(ErrorCode.NO_ERROR, reason);
  }

  fail(code: ErrorCode, refusal: Refusal, message: string): void {
    if (this.isOver) return;
    this.#context.refused(refusal);
    this.#end(code, message);
  }

  #crash(error: unknown): void {
    this.#context.crashed(error);
    if (!this.isOver) this.#end(ErrorCode.INTERNAL_ERROR, 'internal error');
  }

  #end(code: ErrorCode, message: string): void {
    this.#outflow.writer.goaway(this.#streams.numbers.lastServed, code, message);
    this.sayGoodbye();
  }

  /**
   * Sends what there is and the end of the stream, and goes on reading for a while: a socket closed over unread input
   * makes the kernel reset the connection, and the peer loses our last words.
   */
  sayGoodbye(): void {
    this.isOver = true;
    this.#cancelStreams();
    this.#outflow.close();
    this.#backPressure.resume();
    this.#wire.end();
    this.#lingerDeadline = this.now + this.#limits.lingerMs;
    this.#nextWake = 0;
  }

  #destroy(refusal?: Refusal): void {
    if (refusal !== undefined) this.#context.refused(refusal);
    this.wireClosed();
    this.#wire.destroy();
  }

  #cancelStreams(): void {
    this.#streams.cancelAll();
    this.#headers.abandon();
  }
}
