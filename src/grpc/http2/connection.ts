import { Ending } from './ending';
import { type DecodedHead, type HeaderReader, HeaderProblem, HeaderTables } from './header-reader';
import { Input, dependencyAt } from './input';
import { LIMITS, type Rejection } from './limits';
import { Output, type Transport } from './output';
import {
  ConnectionError,
  DEFAULT_HEADER_TABLE_BYTES,
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  Flag,
  FrameType,
  MAX_31_BITS,
  Setting,
  protocolError,
} from './protocol';
import { Closing } from './stream-table';
import { Streams, type StreamsContext } from './streams';

const { END_STREAM, ACK } = Flag;
const EMPTY = Buffer.alloc(0);

/** What a connection uses of its server. */
export interface ConnectionContext extends StreamsContext {
  readonly headers: HeaderReader;
  /** Reports an internal error. The connection on which it occurred is ended. */
  internalError(error: unknown): void;
  /** Requests a call of {@link Connection.flush} at the end of this turn. */
  flushLater(connection: Connection): void;
  /** Requests a call of {@link Connection.runScheduled} in the next turn. */
  runLater(connection: Connection): void;
}

/**
 * The server side of one HTTP/2 connection (RFC 9113): what each frame means. It reads no clock and owns neither a timer nor a
 * socket: its input is {@link receive} and {@link tick}, its output goes to the {@link Transport}.
 */
export class Connection {
  readonly #context: ConnectionContext;
  readonly #transport: Transport;
  readonly #ending: Ending;
  readonly #input = new Input();
  readonly #output: Output;
  readonly #streams: Streams;
  readonly #tables = new HeaderTables();
  /** Bytes of DATA received that no WINDOW_UPDATE of the connection has returned to the peer. */
  #unrefunded = 0;
  /** The peer has acknowledged our SETTINGS. */
  #isAcknowledged = false;
  /** The server stops: calls that stay open end with the final GOAWAY. */
  #isDraining = false;
  /** Streams to run wait until the chunk has been read. */
  #isReceiving = true;
  /** Output is written when the present call of a method ends, so that no other end of the turn has to be requested. */
  #willFlush = true;
  #isRunScheduled = false;
  #isTransportClosed = false;

  /** @param prefaceMs the part of {@link LIMITS.prefaceMs} that is left */
  constructor(context: ConnectionContext, transport: Transport, prefaceMs: number = LIMITS.prefaceMs) {
    this.#context = context;
    this.#transport = transport;
    this.#ending = new Ending(context.now(), context.limits, prefaceMs);
    this.#output = new Output(transport, context.limits, context.now, () => this.#outputBegan());
    this.#streams = new Streams(context, transport, this.#ending, this.#output, () => this.#runLater());

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
    return this.#ending.hasEnded;
  }

  /** How many streams wait because the process has more work than time. */
  get waitingStreams(): number {
    return this.#streams.runQueue.waiting;
  }

  // ---------------------------------------------------------------- events of the socket and the clock

  /** Receives bytes from the peer. The connection owns the chunk from then on. */
  receive(chunk: Buffer): void {
    const input = this.#input;
    const ending = this.#ending;
    if (ending.hasEnded) return;
    ending.received(this.#context.now());
    this.#isReceiving = true;
    this.#willFlush = true;
    try {
      input.receive(chunk, ending.now);
      while (!ending.hasEnded && input.next()) {
        this.#onFrame(input);
        this.#endIfExceeded();
      }
    } catch (error) {
      if (error instanceof ConnectionError) this.#fail(error.code, error.rejection, error.message);
      else this.#failInternally(error);
    }
    input.release();
    ending.headerBlock = input.blockDeadline;
    ending.wakeAt(ending.headerBlock);
    this.#isReceiving = false;
    this.#endTurn();
  }

  /** The socket has sent everything that was written. */
  drained(): void {
    this.#ending.unread = Infinity;
    if (this.#isTransportClosed) return;
    this.#ending.now = this.#context.now();
    this.#willFlush = true;
    this.#output.resume();
    this.#endTurn();
  }

  /** The peer has closed its side or the whole socket: no response can be sent any more. */
  transportClosed(): void {
    this.#ending.hasEnded = true;
    this.#isTransportClosed = true;
    this.#cancelStreams();
  }

  /** Checks the deadlines. Must be called several times a second. */
  tick(now: number): void {
    const ending = this.#ending;
    if (now < ending.nextWake || this.#isTransportClosed) return;
    ending.now = now;
    ending.nextWake = Infinity;
    this.#checkDeadlines(now);
    if (this.#output.waiting.size > 0) ending.nextWake = 0;
    this.flush();
    ending.wakeAt(ending.next());
  }

  #checkDeadlines(now: number): void {
    const ending = this.#ending;
    if (now >= ending.linger) return this.#destroy();
    if (ending.hasEnded) return;
    if (now >= ending.preface) return this.#fail(ErrorCode.SETTINGS_TIMEOUT, 'preface_timeout', 'no SETTINGS in time');
    if (now >= ending.settingsAck) {
      return this.#fail(ErrorCode.SETTINGS_TIMEOUT, 'settings_timeout', 'SETTINGS not acknowledged');
    }
    if (now >= ending.headerBlock) {
      return this.#fail(ErrorCode.ENHANCE_YOUR_CALM, 'header_timeout', 'header block not ended in time');
    }
    if (now >= ending.abort) return this.abort(ending.reason);
    if (now >= ending.unread) {
      if (!this.#output.hasProgressed()) return this.#destroy('slow_reader');
      ending.unread = now + LIMITS.unreadOutputMs;
    }
    if (!ending.keepsAlive(this.#output.writer, this.#output.isPaused)) return this.#destroy('keepalive_timeout');
    if (now >= ending.age) this.#shutDown('max_age', this.#context.limits.maxAgeGraceMs);
    if (now >= ending.final) this.#finalize();
    this.#streams.pump(true);
    this.#streams.check();
  }

  // ---------------------------------------------------------------- turns

  #endTurn(): void {
    if (!this.hasEnded) {
      if (this.#output.isPumpDue) {
        this.#output.isPumpDue = false;
        this.#streams.pump(false);
      }
      if (!this.#isRunScheduled) this.#streams.runQueue.run();
    }
    this.flush();
    this.#willFlush = false;
  }

  /** Runs the streams that earlier turns left. */
  runScheduled(): void {
    this.#isRunScheduled = false;
    this.#ending.now = this.#context.now();
    this.#streams.runQueue.run();
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
    if (this.#ending.isFinal && this.#streams.table.size === 0 && !this.hasEnded) this.#end();
    const output = this.#output;
    output.flush();
    if (this.hasEnded) return;
    if (output.isOverflowing) return this.#destroy('slow_reader');
    if (!output.exceedsSoftLimit || output.isPaused) return;
    output.pause();
    this.#ending.unread = this.#context.now() + LIMITS.unreadOutputMs;
    this.#ending.wakeAt(this.#ending.unread);
  }

  // ---------------------------------------------------------------- frames

  #onFrame(input: Input): void {
    switch (input.type) {
      case FrameType.DATA:
        return this.#onData(input);
      case FrameType.HEADERS:
        return this.#onHeaders(input);
      case FrameType.PRIORITY:
        return this.#onPriority(input);
      case FrameType.RST_STREAM:
        return this.#onReset(input.stream);
      case FrameType.SETTINGS:
        return (input.flags & ACK) === 0 ? this.#onSettings(input) : this.#onSettingsAck();
      case FrameType.PING:
        return this.#onPing(input);
      case FrameType.GOAWAY:
        // The peer opens no more streams. The open ones finish, without a limit until a shutdown begins. Its last stream identifier
        // concerns server push, which is not implemented.
        return this.#finalize();
      case FrameType.WINDOW_UPDATE:
        return this.#onWindowUpdate(input);
      default:
        this.#output.abuse.chargeIdleFrame(this.#ending.now);
    }
  }

  /** Section 6.1. */
  #onData({ flags, stream: id, length: charged, source, start, end }: Input): void {
    const streams = this.#streams;
    this.#refund(charged);
    const stream = streams.table.get(id);
    if (stream === undefined) return this.#onLateData(id);
    if (stream.isRemoteEnded) return streams.reset(stream, ErrorCode.STREAM_CLOSED, 'stream_error');
    if (charged > stream.receiveWindow) {
      return streams.reset(stream, ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error');
    }
    const length = end - start;
    const endStream = (flags & END_STREAM) !== 0;
    stream.receiveWindow -= charged;
    stream.bodyBytes += length;
    if (stream.contentLeft >= 0) {
      stream.contentLeft -= length;
      if (stream.contentLeft < 0 || (endStream && stream.contentLeft > 0)) {
        return streams.reset(stream, ErrorCode.PROTOCOL_ERROR, 'malformed');
      }
    }
    if (endStream) {
      stream.isRemoteEnded = true;
      streams.messageEnded(stream);
    } else {
      const { abuse } = this.#output;
      if (charged > length) streams.consumed(stream, charged - length);
      if (length === 0) abuse.chargeFault(this.#ending.now);
      else if (length < LIMITS.smallDataBytes) {
        stream.smallDataCharged += abuse.chargeSmallData(this.#ending.now, length);
      }
      if (abuse.exceeded !== undefined) return;
    }
    stream.call!.data(source, start, end, endStream);
  }

  #onLateData(id: number): void {
    const { table } = this.#streams;
    if (table.isIdle(id)) protocolError('DATA on an idle stream');
    const closing = table.closingOf(id);
    if (closing === Closing.ENDED || closing === Closing.RESET_BY_PEER) {
      this.#streams.resetClosed(id, ErrorCode.STREAM_CLOSED);
    } else if (closing === Closing.UNKNOWN) {
      // Never opened, or forgotten: the peer may have sent it before our reset arrived, so it is no fault.
      this.#output.abuse.chargeIdleFrame(this.#ending.now);
      this.#streams.writeReset(id, ErrorCode.STREAM_CLOSED, false);
    }
  }

  /**
   * Refunds the window of the connection, at once: what is kept of the bytes is limited by {@link Streams.hold} and by the windows of
   * the streams, which are refunded as calls consume them.
   */
  #refund(bytes: number): void {
    this.#unrefunded += bytes;
    if (this.#unrefunded * 2 < LIMITS.connectionWindowBytes || !this.#output.mayControl()) return;
    this.#output.writer.windowUpdate(0, this.#unrefunded);
    this.#unrefunded = 0;
  }

  /** A whole header block: a request or trailers (sections 6.2 and 6.10). */
  #onHeaders(input: Input): void {
    const id = input.stream;
    const streams = this.#streams;
    const { table } = streams;
    if (!table.isIdle(id)) return this.#onLaterHeaders(input);
    const endStream = (input.flags & END_STREAM) !== 0;
    table.opened(id);
    // Decoded even if the stream is rejected: the dynamic table must stay in step with the peer's.
    const { headers } = this.#context;
    const head: DecodedHead | HeaderProblem = headers.request(this.#tables, input.source, input.start, input.end);
    if (table.isAfterGoaway(id)) return table.closed(id, Closing.RESET_BY_US);
    this.#output.abuse.streamOpened();
    if (!streams.hasFreeSlot) {
      // Before it has acknowledged our SETTINGS, the peer cannot know the limit: this is then no fault.
      return streams.resetUnopened(id, ErrorCode.REFUSED_STREAM, 'streams', this.#isAcknowledged);
    }
    const isOversized = head === HeaderProblem.OVERSIZED;
    if (
      input.dependsOnItself ||
      head === HeaderProblem.MALFORMED ||
      (!isOversized && endStream && head.contentLength > 0)
    ) {
      return streams.resetUnopened(id, ErrorCode.PROTOCOL_ERROR, 'malformed', true);
    }
    const stream = streams.open(id, isOversized ? -1 : head.contentLength, endStream);
    if (isOversized) {
      streams.rejected('header_list');
      streams.sendTrailers(stream, headers.oversized);
    } else head.meaning.open(streams, stream, endStream);
  }

  /** A block on a stream that has been opened before: trailers, or a late frame. */
  #onLaterHeaders({ stream: id, flags, source, start, end }: Input): void {
    const streams = this.#streams;
    const { headers } = this.#context;
    const stream = streams.table.get(id);
    if (stream === undefined) {
      const closing = streams.table.closingOf(id);
      if (closing === Closing.ENDED) {
        throw new ConnectionError(ErrorCode.STREAM_CLOSED, 'protocol_error', 'HEADERS on a closed stream');
      }
      if (closing === Closing.UNKNOWN) protocolError('stream identifiers must increase');
      headers.skip(this.#tables, source, start, end);
      if (closing === Closing.RESET_BY_PEER) streams.resetClosed(id, ErrorCode.STREAM_CLOSED);
      return;
    }
    const problem = headers.trailers(this.#tables, source, start, end);
    if (stream.isRemoteEnded) return streams.reset(stream, ErrorCode.STREAM_CLOSED, 'stream_error');
    if (problem === HeaderProblem.OVERSIZED) {
      return streams.reset(stream, ErrorCode.ENHANCE_YOUR_CALM, 'header_list');
    }
    if (problem === HeaderProblem.MALFORMED || (flags & END_STREAM) === 0 || stream.contentLeft > 0) {
      return streams.reset(stream, ErrorCode.PROTOCOL_ERROR, 'malformed');
    }
    stream.isRemoteEnded = true;
    streams.messageEnded(stream);
    stream.call!.data(EMPTY, 0, 0, true);
  }

  /** RFC 7540's priorities have no effect; only their errors are handled. */
  #onPriority({ stream: id, length, source, start }: Input): void {
    const streams = this.#streams;
    this.#output.abuse.chargeIdleFrame(this.#ending.now);
    const hasWrongLength = length !== 5;
    if (!hasWrongLength && dependencyAt(source, start) !== id) return;
    const code = hasWrongLength ? ErrorCode.FRAME_SIZE_ERROR : ErrorCode.PROTOCOL_ERROR;
    const stream = streams.table.get(id);
    if (stream !== undefined) return streams.reset(stream, code, 'stream_error');
    // An idle stream cannot be reset.
    if (streams.table.isIdle(id))
      throw new ConnectionError(code, 'protocol_error', 'invalid PRIORITY of an idle stream');
    streams.resetClosed(id, code);
  }

  #onReset(id: number): void {
    if (this.#streams.table.isIdle(id)) protocolError('RST_STREAM on an idle stream');
    const stream = this.#streams.table.get(id);
    if (stream !== undefined) this.#streams.resetByPeer(stream);
  }

  /** Section 6.5. */
  #onSettings({ length, source, start, end }: Input): void {
    const ending = this.#ending;
    const output = this.#output;
    const { abuse, peerSettings: peer } = output;
    if (ending.preface !== Infinity) ending.settingsAck = ending.now + LIMITS.settingsAckMs;
    ending.preface = Infinity;
    if (length > LIMITS.settingsEntries * 6) {
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, 'settings_flood', 'too many settings in one frame');
    }
    if (!abuse.chargeSettings(ending.now)) return;
    const before = peer.initialWindowBytes;
    const unknown = peer.apply(source, start, end);
    for (let count = 0; count < unknown; count += 1) abuse.chargeIdleFrame(ending.now);
    if (peer.initialWindowBytes !== before && !this.#streams.widenAll(peer.initialWindowBytes - before)) {
      throw new ConnectionError(
        ErrorCode.FLOW_CONTROL_ERROR,
        'flow_control_error',
        'SETTINGS_INITIAL_WINDOW_SIZE overflows a window',
      );
    }
    if (peer.smallestHeaderTableBytes < DEFAULT_HEADER_TABLE_BYTES) output.sendTableSizeUpdate();
    if (output.mayControl()) output.writer.settingsAck();
  }

  #onSettingsAck(): void {
    if (this.#isAcknowledged) this.#output.abuse.chargeFault(this.#ending.now);
    this.#isAcknowledged = true;
    this.#ending.settingsAck = Infinity;
  }

  #onPing({ flags, source, start, end }: Input): void {
    const output = this.#output;
    const bytes = source.subarray(start, end);
    if ((flags & ACK) !== 0) {
      if (this.#ending.isAnnounced(bytes)) this.#finalize();
    } else if (output.abuse.chargePing(this.#ending.now) && output.mayControl()) output.writer.ping(true, bytes);
  }

  /** Section 6.9. */
  #onWindowUpdate({ stream: id, source, start }: Input): void {
    const streams = this.#streams;
    const output = this.#output;
    if (!output.abuse.chargeWindowUpdate()) return;
    const increment = source.readUInt32BE(start) & MAX_31_BITS;
    if (id === 0) {
      if (increment === 0) protocolError('WINDOW_UPDATE of 0');
      if (!output.widen(increment)) {
        throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error', 'connection window too large');
      }
      return;
    }
    if (streams.table.isIdle(id)) protocolError('WINDOW_UPDATE on an idle stream');
    const stream = streams.table.get(id);
    if (stream === undefined) return;
    if (increment === 0) return streams.reset(stream, ErrorCode.PROTOCOL_ERROR, 'stream_error');
    if (!output.widenStream(stream, increment)) {
      streams.reset(stream, ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error');
    }
  }

  // ---------------------------------------------------------------- ending

  /** The server stops: shuts down gracefully. Calls that stay open end with the final GOAWAY. */
  drain(): void {
    if (this.hasEnded) return;
    this.#ending.now = this.#context.now();
    this.#isDraining = true;
    if (this.#ending.isFinal) this.#streams.stopCalls('drain');
    this.#shutDown('', Infinity);
    this.flush();
  }

  /** Shuts down gracefully: see {@link Ending}. */
  #shutDown(reason: string, graceMs: number): void {
    if (!this.#ending.hasBegun) this.#ending.begin(this.#output.writer, reason, graceMs);
  }

  #finalize(): void {
    if (this.#ending.isFinal) return;
    this.#ending.finalize(this.#output.writer, this.#streams.table);
    if (this.#isDraining) this.#streams.stopCalls('drain');
  }

  /** Ends now: calls that are open end without an answer. `reason` becomes the debug data of GOAWAY. */
  abort(reason: string): void {
    if (this.hasEnded) return;
    this.#ending.now = this.#context.now();
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
   * Sends the frames written so far and ends our side of the socket, but reads for another {@link Limits.lingerMs}: the kernel
   * resets a socket that is closed with unread input, and the peer would lose our last frames.
   */
  #end(): void {
    this.#ending.hasEnded = true;
    this.#cancelStreams();
    this.#output.close();
    this.#output.resume();
    this.#transport.end();
    // A response that ends the connection may follow long after the last input.
    this.#ending.linger = this.#context.now() + this.#context.limits.lingerMs;
    this.#ending.nextWake = 0;
  }

  #destroy(rejection?: Rejection): void {
    if (rejection !== undefined) this.#streams.rejected(rejection);
    this.transportClosed();
    this.#transport.destroy();
  }

  #cancelStreams(): void {
    this.#streams.cancelAll();
    this.#input.discardBlock();
    this.#ending.headerBlock = Infinity;
  }
}
