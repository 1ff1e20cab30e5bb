import type { ConnectionDeadlines } from './connection-deadlines';
import type { HeldBytes } from './held-bytes';
import type { OnRejected, Peer, Rejection } from './limits';
import type { Output } from './output';
import { DEFAULT_WINDOW_BYTES, ErrorCode } from './protocol';
import { type RunContext, RunQueue } from './run-queue';
import { type StopReason, Stream } from './stream';
import { Closing, StreamTable } from './stream-table';

const EMPTY = new Uint8Array(0);

/**
 * What a request's header list means: a call to begin, or a response that rejects it. It is reused for later requests
 * with the same headers.
 */
export interface RequestMeaning {
  /**
   * Begins a call, as {@link Stream.call}, or ends the response. `isEnded`: the request has neither a body nor
   * trailers.
   */
  open(streams: Streams, stream: Stream, isEnded: boolean): void;
}

/** What the streams of a connection use of its server. */
export interface StreamsContext extends RunContext {
  readonly heldBytes: HeldBytes;
  /** Streams that are open, or closed while the application still works on them, on all connections. */
  openStreams: number;
  /** Streams of calls that stay open, on all connections; {@link openStreams} includes them. */
  streamingCalls: number;
  readonly rejected: OnRejected;
}

/**
 * What calls do with their streams, and how these are opened and closed. A call responds with {@link sendHeaders}, any
 * number of {@link sendData}, and {@link sendTrailers}; on a closed stream these do nothing.
 */
export class Streams {
  readonly table = new StreamTable();
  readonly runQueue: RunQueue;
  /** The other end of the connection. */
  readonly peer: Peer;
  readonly #context: StreamsContext;
  readonly #deadlines: ConnectionDeadlines;
  readonly #output: Output;
  /** The number of streams that are open, or closed while the application still works on them. */
  #slotsTaken = 0;
  /** The number of streams of calls that stay open. */
  #streamingCalls = 0;
  /** Bytes of requests that are kept for this connection. */
  #held = 0;

  /** @param runLater see {@link RunQueue} */
  constructor(
    context: StreamsContext,
    peer: Peer,
    deadlines: ConnectionDeadlines,
    output: Output,
    runLater: () => void,
  ) {
    this.#context = context;
    this.peer = peer;
    this.#deadlines = deadlines;
    this.#output = output;
    this.runQueue = new RunQueue(context, deadlines, output, runLater);
  }

  // ---------------------------------------------------------------- for calls

  /** The server's clock at the beginning of this turn: milliseconds, monotonic. */
  get now(): number {
    return this.#deadlines.now;
  }

  /** The peer's SETTINGS_MAX_HEADER_LIST_SIZE, Infinity if it sent none. */
  get maxHeaderListBytes(): number {
    return this.#output.peerSettings.maxHeaderListBytes;
  }

  /** Reports a rejection; see {@link OnRejected}. */
  rejected(kind: Rejection, reason = ''): void {
    this.#context.rejected(kind, this.peer, reason);
  }

  /**
   * The work of the stream's call will not end soon after it has begun: it is not paced, and ends when the server
   * stops. Returns false if too many such calls are open; this one must then end.
   */
  keepOpen(stream: Stream): boolean {
    const context = this.#context;
    const { maxStreamingCallsPerConnection, maxStreamingCalls } = context.limits;
    if (this.#streamingCalls >= maxStreamingCallsPerConnection || context.streamingCalls >= maxStreamingCalls) {
      this.rejected('streaming_calls');
      return false;
    }
    stream.staysOpen = true;
    this.#streamingCalls += 1;
    context.streamingCalls += 1;
    return true;
  }

  /**
   * A message of a call that may send any number of them is about to be handled. Returns false if there are too many;
   * the call must then end.
   */
  mayHandleMessage(): boolean {
    const isPermitted = this.#output.abuse.takeMessage(this.now);
    if (!isPermitted) this.rejected('streaming_messages');
    return isPermitted;
  }

  /** Requests a call of {@link Call.run} once all input that has arrived is read. */
  schedule(stream: Stream): void {
    // While it waits to go on, others may run: otherwise all that run could wait for one another.
    this.#stopCounting(stream);
    this.runQueue.add(stream);
  }

  /** The work begun by {@link Call.run} has ended. Must be called once per run; a closed stream then frees its slot. */
  release(stream: Stream): void {
    this.#stopCounting(stream);
    stream.isRunning = false;
    if (stream.isClosed) this.#releaseSlot(stream);
  }

  /** Requests a call of {@link Call.expire} at this time of the server's clock, or up to one tick later. */
  expireAt(stream: Stream, time: number): void {
    stream.expiresAt = time;
    if (time >= this.#deadlines.expiry) return;
    this.#deadlines.expiry = time;
    this.#deadlines.wakeAt(time);
  }

  /**
   * Accounts for bytes of the request that are kept beyond the turn, until {@link releaseHeld} or until the stream is
   * closed. Returns false if the connection or the server keeps too many; the bytes must then not be kept. Until
   * {@link requestCompleted}, the memory may be taken back by {@link Call.stop}.
   */
  hold(stream: Stream, bytes: number): boolean {
    // An empty message must not be among those that can be displaced: displacing it would release nothing.
    if (stream.isClosed || bytes === 0) return true;
    const { limits, heldBytes } = this.#context;
    if (this.#held + bytes > limits.maxHeldBytesPerConnection || !heldBytes.hold(stream, bytes, this.now)) {
      this.rejected('request_memory', 'no memory is left for it');
      return false;
    }
    // Making room may have ended this connection.
    if (!stream.isClosed) this.#held += bytes;
    return true;
  }

  /** Bytes accounted for by {@link hold} are no longer kept. */
  releaseHeld(stream: Stream, bytes: number): void {
    if (stream.isClosed || bytes === 0) return;
    this.#context.heldBytes.release(stream, bytes);
    this.#held -= bytes;
  }

  /** The whole request has been received, and its handling needs what it holds. */
  requestCompleted(stream: Stream): void {
    this.#context.heldBytes.complete(stream);
  }

  /** Bytes received have been processed: the peer may send as many more on this stream. */
  consumed(stream: Stream, bytes: number): void {
    if (stream.isClosed || stream.isRemoteEnded) return;
    stream.unrefunded += bytes;
    if (stream.unrefunded * 2 < DEFAULT_WINDOW_BYTES || !this.#output.mayControl()) return;
    this.#output.writer.windowUpdate(stream.id, stream.unrefunded);
    stream.receiveWindow += stream.unrefunded;
    stream.unrefunded = 0;
  }

  /** A message of the request is complete: the charge for its small frames is refunded. */
  messageEnded(stream: Stream): void {
    if (stream.smallDataCharged === 0) return;
    this.#output.abuse.refundSmallData(stream.smallDataCharged);
    stream.smallDataCharged = 0;
  }

  sendHeaders(stream: Stream, block: Uint8Array): void {
    if (!stream.isClosed) this.#output.headers(stream.id, block, false);
  }

  /** Sends `first` and then `second`, so that a prefix needs no concatenation. Both are copied before this returns. */
  sendData(stream: Stream, first: Uint8Array, second: Uint8Array = EMPTY): void {
    if (stream.isClosed) return;
    const overdue = this.#output.data(stream, first, second);
    if (overdue === Infinity) return;
    this.#deadlines.response = Math.min(this.#deadlines.response, overdue);
    // The next tick sends what is not worthwhile now.
    this.#deadlines.wakeAt(0);
  }

  /** Ends the response with a header block. If nothing was sent before, the block is the whole response. */
  sendTrailers(stream: Stream, block: Uint8Array): void {
    if (stream.isClosed) return;
    const overdue = this.#output.end(stream, block);
    if (overdue === 0) return this.#responseEnded(stream);
    this.#deadlines.response = Math.min(this.#deadlines.response, overdue);
    this.#deadlines.wakeAt(overdue);
  }

  /** Ends the response as {@link Call.stop} requires: at once, unless the reason is that the server stops. */
  stop(stream: Stream, trailers: Uint8Array, reason: StopReason): void {
    if (reason === 'memory') this.rejected('request_memory', 'its memory was needed for other requests');
    this.sendTrailers(stream, trailers);
    // Trailers that wait for a flow-control window would keep the memory, and the connection.
    if (reason !== 'drain') this.reset(stream, reason === 'memory' ? ErrorCode.ENHANCE_YOUR_CALM : ErrorCode.CANCEL);
  }

  // ---------------------------------------------------------------- opening and closing

  get hasFreeSlot(): boolean {
    return this.#slotsTaken < this.#context.limits.maxConcurrentStreams;
  }

  /** Opens a stream. `contentLength` is -1 if the request has none. */
  open(id: number, contentLength: number, isRemoteEnded: boolean): Stream {
    const stream = new Stream(id, this.#output.peerSettings.initialWindowBytes, contentLength);
    stream.isRemoteEnded = isRemoteEnded;
    this.table.add(stream);
    this.#slotsTaken += 1;
    this.#context.openStreams += 1;
    return stream;
  }

  /** Resets an open stream, and counts a fault of the peer. */
  reset(stream: Stream, code: ErrorCode, rejection?: Rejection): void {
    if (stream.isClosed) return;
    if (rejection !== undefined) this.rejected(rejection);
    this.#close(stream, Closing.RESET_BY_US);
    stream.call?.cancel();
    this.writeReset(stream.id, code, true);
  }

  resetByPeer(stream: Stream): void {
    // In a backlog, callers lose patience before their streams have run.
    if (!stream.hasRun && !this.runQueue.hasBacklog) this.#output.abuse.chargeReset(this.now);
    this.#close(stream, Closing.RESET_BY_PEER);
    stream.call?.cancel();
  }

  /** Rejects a stream instead of opening it. */
  resetUnopened(id: number, code: ErrorCode, rejection: Rejection, isFault: boolean): void {
    this.rejected(rejection);
    this.table.closed(id, Closing.RESET_BY_US);
    this.writeReset(id, code, isFault);
  }

  /** Answers a frame on a closed stream. */
  resetClosed(id: number, code: ErrorCode): void {
    this.rejected('stream_error');
    this.table.closedReset(id);
    this.writeReset(id, code, true);
  }

  /** `isFault`: the peer caused it by a mistake, of which it may make only so many. */
  writeReset(id: number, code: ErrorCode, isFault: boolean): void {
    if (this.#deadlines.hasEnded || !this.#output.mayControl()) return;
    this.#output.writer.reset(id, code);
    if (isFault) this.#output.abuse.chargeFault(this.now);
  }

  #responseEnded(stream: Stream): void {
    this.#output.abuse.responseSent();
    if (stream.isRemoteEnded) return this.#close(stream, Closing.ENDED);
    // Section 8.1: NO_ERROR makes the client stop sending a request that is not needed any more.
    this.writeReset(stream.id, ErrorCode.NO_ERROR, false);
    this.#close(stream, Closing.RESET_BY_US);
  }

  #close(stream: Stream, closing: Closing): void {
    this.table.delete(stream);
    this.table.closed(stream.id, closing);
    this.#markClosed(stream);
  }

  #markClosed(stream: Stream): void {
    this.#output.discard(stream);
    this.releaseHeld(stream, stream.held);
    stream.isClosed = true;
    if (!stream.isRunning) this.#releaseSlot(stream);
  }

  #releaseSlot({ staysOpen }: Stream): void {
    this.#slotsTaken -= 1;
    this.#context.openStreams -= 1;
    if (!staysOpen) return;
    this.#streamingCalls -= 1;
    this.#context.streamingCalls -= 1;
  }

  /** Ends what the pacing counts of a stream, which does not run at present. */
  #stopCounting(stream: Stream): void {
    if (!stream.isCounted) return;
    stream.isCounted = false;
    this.#context.pacing.ended();
  }

  // ---------------------------------------------------------------- all open streams

  /**
   * Section 6.9.2: a new SETTINGS_INITIAL_WINDOW_SIZE also applies to open streams. Returns false if it overflows a
   * window.
   */
  widenAll(difference: number): boolean {
    return this.table.list().every((stream) => this.#output.widenStream(stream, difference));
  }

  /** Sends waiting output as far as the windows permit. `isTick`: also in frames that are hardly worthwhile. */
  pump(isTick: boolean): void {
    for (const stream of this.#output.waiting) {
      const { trailers } = stream.waiting!;
      if (!this.#output.pump(stream, isTick)) continue;
      if (trailers === undefined) stream.call?.drained();
      else this.sendTrailers(stream, trailers);
    }
  }

  /** Notices streams whose time is over. */
  check(): void {
    if (this.now >= this.#deadlines.expiry) this.#expire();
    if (this.now >= this.#deadlines.response) this.#resetOverdue();
  }

  #expire(): void {
    this.#deadlines.expiry = Infinity;
    for (const stream of this.table.list()) {
      if (stream.expiresAt > this.now) {
        this.#deadlines.expiry = Math.min(this.#deadlines.expiry, stream.expiresAt);
        continue;
      }
      stream.expiresAt = Infinity;
      stream.call?.expire();
    }
  }

  #resetOverdue(): void {
    this.#deadlines.response = Infinity;
    for (const stream of this.#output.waiting) {
      const { deadline } = stream.waiting!;
      if (deadline > this.now) this.#deadlines.response = Math.min(this.#deadlines.response, deadline);
      else {
        this.rejected('response_timeout');
        this.reset(stream, ErrorCode.CANCEL);
      }
    }
  }

  /** Sends the final GOAWAY of a graceful shutdown, unless it has been sent. */
  finalize(): void {
    if (this.#deadlines.isFinal) return;
    this.#deadlines.finalize(this.#output.writer, this.table);
    if (this.#deadlines.isDraining) this.stopCalls('drain');
  }

  /** Ends calls for this reason: with `drain`, those that stay open, otherwise all. */
  stopCalls(reason: StopReason): void {
    for (const stream of this.table.list()) {
      if (!stream.isClosed && (reason !== 'drain' || stream.staysOpen)) stream.call?.stop(reason);
    }
  }

  /** The peer sends nothing more: closes the streams whose requests are incomplete, or whose calls wait for its end. */
  cancelUnfinished(): void {
    for (const stream of this.table.list()) {
      if (!stream.isRemoteEnded || (stream.staysOpen && stream.hasRun)) this.resetByPeer(stream);
    }
  }

  /** The connection has ended. */
  cancelAll(): void {
    const streams = this.table.list();
    this.table.clear();
    for (const stream of streams) {
      // A call that is cancelled may end others.
      if (stream.isClosed) continue;
      this.#markClosed(stream);
      stream.call?.cancel();
    }
  }
}
