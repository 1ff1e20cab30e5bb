import type { ConnectionDeadlines } from './connection-deadlines';
import { HeaderProblem, HeaderReader, type RequestInterpreter } from './header-reader';
import { type Input, dependencyAt } from './input';
import { LIMITS } from './limits';
import type { Output } from './output';
import {
  ConnectionError,
  DEFAULT_HEADER_TABLE_BYTES,
  ErrorCode,
  Flag,
  FrameType,
  MAX_31_BITS,
  protocolError,
} from './protocol';
import { Closing } from './stream-table';
import type { Streams } from './streams';

const { END_STREAM, ACK } = Flag;
const EMPTY = Buffer.alloc(0);

/** What each frame that a connection receives means (RFC 9113, section 6). */
export class Frames {
  readonly #headers: HeaderReader;
  readonly #input: Input;
  readonly #deadlines: ConnectionDeadlines;
  readonly #output: Output;
  readonly #streams: Streams;
  /** Bytes of DATA received that no WINDOW_UPDATE of the connection has returned to the peer. */
  #unrefunded = 0;
  /** The peer has acknowledged our SETTINGS. */
  #isAcknowledged = false;

  constructor(
    interpreter: RequestInterpreter,
    input: Input,
    deadlines: ConnectionDeadlines,
    output: Output,
    streams: Streams,
  ) {
    this.#headers = new HeaderReader(interpreter);
    this.#input = input;
    this.#deadlines = deadlines;
    this.#output = output;
    this.#streams = streams;
  }

  /** Handles the frame in the input. Throws a {@link ConnectionError} if it must not be followed by others. */
  onFrame(): void {
    const input = this.#input;
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
        // The peer opens no more streams. The open ones finish, without a limit until a shutdown begins. Its last
        // stream identifier concerns server push, which is not implemented.
        return this.#streams.finalize();
      case FrameType.WINDOW_UPDATE:
        return this.#onWindowUpdate(input);
      default:
        this.#output.abuse.chargeIdleFrame(this.#deadlines.now);
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
      if (length === 0) abuse.chargeFault(this.#deadlines.now);
      else if (length < LIMITS.smallDataBytes) {
        stream.smallDataCharged += abuse.chargeSmallData(this.#deadlines.now, length);
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
      this.#output.abuse.chargeIdleFrame(this.#deadlines.now);
      this.#streams.writeReset(id, ErrorCode.STREAM_CLOSED, false);
    }
  }

  /**
   * Refunds the window of the connection, at once: what is kept of the bytes is limited by {@link Streams.hold} and by
   * the windows of the streams, which are refunded as calls consume them.
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
    const headers = this.#headers;
    const head = headers.request(input.source, input.start, input.end);
    if (table.isAfterGoaway(id)) return table.closed(id, Closing.RESET_BY_US);
    this.#output.abuse.streams += 1;
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
      streams.sendTrailers(stream, headers.interpreter.oversized);
    } else head.meaning.open(streams, stream, endStream);
  }

  /** A block on a stream that has been opened before: trailers, or a late frame. */
  #onLaterHeaders({ stream: id, flags, source, start, end }: Input): void {
    const streams = this.#streams;
    const headers = this.#headers;
    const stream = streams.table.get(id);
    if (stream === undefined) {
      const closing = streams.table.closingOf(id);
      if (closing === Closing.ENDED) {
        throw new ConnectionError(ErrorCode.STREAM_CLOSED, 'protocol_error', 'HEADERS on a closed stream');
      }
      if (closing === Closing.UNKNOWN) protocolError('stream identifiers must increase');
      headers.trailers(source, start, end);
      if (closing === Closing.RESET_BY_PEER) streams.resetClosed(id, ErrorCode.STREAM_CLOSED);
      return;
    }
    const problem = headers.trailers(source, start, end);
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
    this.#output.abuse.chargeIdleFrame(this.#deadlines.now);
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
    const deadlines = this.#deadlines;
    const output = this.#output;
    const { abuse, peerSettings: peer } = output;
    if (deadlines.preface !== Infinity) deadlines.settingsAck = deadlines.now + LIMITS.settingsAckMs;
    deadlines.preface = Infinity;
    if (length > LIMITS.settingsEntries * 6) {
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, 'settings_flood', 'too many settings in one frame');
    }
    if (!abuse.chargeSettings(deadlines.now)) return;
    const before = peer.initialWindowBytes;
    const unknown = peer.apply(source, start, end);
    for (let count = 0; count < unknown; count += 1) abuse.chargeIdleFrame(deadlines.now);
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
    if (this.#isAcknowledged) this.#output.abuse.chargeFault(this.#deadlines.now);
    this.#isAcknowledged = true;
    this.#deadlines.settingsAck = Infinity;
  }

  #onPing({ flags, source, start, end }: Input): void {
    const output = this.#output;
    const bytes = source.subarray(start, end);
    if ((flags & ACK) !== 0) {
      if (this.#deadlines.isAnnounced(bytes)) this.#streams.finalize();
    } else if (output.abuse.chargePing(this.#deadlines.now) && output.mayControl()) output.writer.ping(true, bytes);
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
}
