import { ConnectionError, protocolError } from '../protocol';
import type { FrameConsumer, FrameHeader } from '../frames/frame-reader';
import { ErrorCode, Flag, FrameType, MAX_31_BITS } from '../protocol';
import { dependencyAt, validateFrame } from '../frames/validate-frame';
import type { AbuseLimits } from '../limits/abuse-limits';
import type { ConnectionControl } from '../streams/connection-control';
import type { SendQueue } from '../streams/send-queue';
import type { Streams } from '../streams/streams';
import type { DataFrames } from './data-frames';
import type { GracefulShutdown } from './graceful-shutdown';
import type { HeaderFrames } from './header-frames';
import type { SettingsExchange } from './settings-exchange';

const { ACK } = Flag;

export interface FrameHandlerParts<M, S> {
  readonly control: ConnectionControl;
  readonly abuseLimits: AbuseLimits;
  readonly sendQueue: SendQueue<S>;
  readonly streams: Streams<S>;
  readonly settings: SettingsExchange<S>;
  readonly headers: HeaderFrames<M, S>;
  readonly data: DataFrames<S>;
  readonly shutdown: GracefulShutdown<S>;
}

/** Checks the order of frames, and passes each to the part of the connection that handles its type. */
export class FrameHandler<M, S> implements FrameConsumer {
  readonly #control: ConnectionControl;
  readonly #abuseLimits: AbuseLimits;
  readonly #sendQueue: SendQueue<S>;
  readonly #streams: Streams<S>;
  readonly #settings: SettingsExchange<S>;
  readonly #headers: HeaderFrames<M, S>;
  readonly #data: DataFrames<S>;
  readonly #shutdown: GracefulShutdown<S>;

  constructor(parts: FrameHandlerParts<M, S>) {
    this.#control = parts.control;
    this.#abuseLimits = parts.abuseLimits;
    this.#sendQueue = parts.sendQueue;
    this.#streams = parts.streams;
    this.#settings = parts.settings;
    this.#headers = parts.headers;
    this.#data = parts.data;
    this.#shutdown = parts.shutdown;
  }

  get hasEnded(): boolean {
    return this.#control.hasEnded;
  }

  validate(header: FrameHeader): void {
    const { type } = header;
    if (!this.#settings.hasBegun && (type !== FrameType.SETTINGS || (header.flags & ACK) !== 0)) {
      protocolError('the first frame is not SETTINGS');
    }
    const { incompleteBlock } = this.#headers;
    if (incompleteBlock !== undefined) {
      if (type !== FrameType.CONTINUATION || header.stream !== incompleteBlock) {
        protocolError('a header block is interrupted');
      }
    } else if (type === FrameType.CONTINUATION) protocolError('CONTINUATION without a header block');
    validateFrame(header);
  }

  onFrame({ type, flags, stream }: FrameHeader, source: Buffer, start: number, end: number): void {
    switch (type) {
      case FrameType.DATA:
        return this.#data.onData(flags, stream, source, start, end);
      case FrameType.HEADERS:
        return this.#headers.onHeaders(flags, stream, source, start, end);
      case FrameType.PRIORITY:
        return this.#onPriority(stream, source, start, end);
      case FrameType.RST_STREAM:
        return this.#onReset(stream);
      case FrameType.SETTINGS:
        return (flags & ACK) === 0 ? this.#settings.onSettings(source, start, end) : this.#settings.onAck();
      case FrameType.PING:
        return this.#onPing(flags, source.subarray(start, end));
      case FrameType.GOAWAY:
        return this.#shutdown.onGoaway();
      case FrameType.WINDOW_UPDATE:
        return this.#onWindowUpdate(stream, source, start);
      case FrameType.CONTINUATION:
        return this.#headers.onContinuation(flags, source, start, end);
      default:
        return this.#abuseLimits.chargeIdleFrame(this.#control.now);
    }
  }

  /** RFC 7540's priorities have no effect; only their errors are handled. */
  #onPriority(id: number, source: Buffer, start: number, end: number): void {
    const streams = this.#streams;
    this.#abuseLimits.chargeIdleFrame(this.#control.now);
    const hasWrongLength = end - start !== 5;
    if (!hasWrongLength && dependencyAt(source, start) !== id) return;
    const code = hasWrongLength ? ErrorCode.FRAME_SIZE_ERROR : ErrorCode.PROTOCOL_ERROR;
    const stream = streams.get(id);
    if (stream !== undefined) return streams.resetStream(stream, code, 'stream_error');
    // An idle stream cannot be reset.
    if (streams.ids.isIdle(id)) throw new ConnectionError(code, 'protocol_error', 'invalid PRIORITY of an idle stream');
    streams.resets.closed(id, code);
  }

  #onReset(id: number): void {
    const streams = this.#streams;
    if (streams.ids.isIdle(id)) protocolError('RST_STREAM on an idle stream');
    const stream = streams.get(id);
    if (stream === undefined) return;
    // In a backlog, callers lose patience before their streams have run.
    if (!stream.hasRun && !streams.hasBacklog) this.#abuseLimits.chargeReset(this.#control.now);
    streams.resetByPeer(stream);
  }

  #onPing(flags: number, bytes: Buffer): void {
    if ((flags & ACK) !== 0) return this.#shutdown.onPingAck(bytes);
    const control = this.#control;
    this.#abuseLimits.chargePing(control.now);
    if (!control.hasEnded && control.mayControl()) this.#sendQueue.writer.ping(true, bytes);
  }

  #onWindowUpdate(id: number, source: Buffer, start: number): void {
    const streams = this.#streams;
    const sendQueue = this.#sendQueue;
    this.#abuseLimits.chargeWindowUpdate();
    if (this.#control.hasEnded) return;
    const increment = source.readUInt32BE(start) & MAX_31_BITS;
    if (id === 0) {
      if (increment === 0) protocolError('WINDOW_UPDATE of 0');
      if (!sendQueue.widen(increment)) {
        throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error', 'connection window too large');
      }
      return;
    }
    if (streams.ids.isIdle(id)) protocolError('WINDOW_UPDATE on an idle stream');
    const stream = streams.get(id);
    if (stream === undefined) return;
    if (increment === 0) return streams.resetStream(stream, ErrorCode.PROTOCOL_ERROR, 'stream_error');
    if (!sendQueue.widenStream(stream, increment)) {
      streams.resetStream(stream, ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error');
    }
  }
}
