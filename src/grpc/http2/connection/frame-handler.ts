import { dependencyAt, validateFrame } from '../frames/validate-frame';
import type { AbuseLimits } from '../limits/abuse-limits';
import type { DataFrames } from './data-frames';
import type { GracefulShutdown } from './graceful-shutdown';
import { ConnectionError } from '../frames/errors';
import type { FrameConsumer } from '../frames/frame-reader';
import type { HeaderFrames } from './header-frames';
import type { SendQueue } from '../streams/send-queue';
import { ErrorCode, Flag, FrameType, MAX_31_BITS } from '../frames/protocol';
import type { SettingsExchange } from './settings-exchange';
import type { Streams } from '../streams/streams';
import type { ConnectionControl } from '../streams/connection-control';

const { ACK } = Flag;

/** Which frame may come when, and which does what. */
export class FrameHandler<M, S> implements FrameConsumer {
  readonly #whole: ConnectionControl;
  readonly #settings: SettingsExchange<S>;
  readonly #headers: HeaderFrames<M, S>;
  readonly #data: DataFrames<S>;
  readonly #departure: GracefulShutdown<S>;
  readonly #streams: Streams<S>;
  readonly #outflow: SendQueue<S>;
  readonly #allowances: AbuseLimits;
  constructor(
    whole: ConnectionControl,
    settings: SettingsExchange<S>,
    headers: HeaderFrames<M, S>,
    data: DataFrames<S>,
    departure: GracefulShutdown<S>,
    streams: Streams<S>,
    outflow: SendQueue<S>,
    allowances: AbuseLimits,
  ) {
    this.#whole = whole;
    this.#settings = settings;
    this.#headers = headers;
    this.#data = data;
    this.#departure = departure;
    this.#streams = streams;
    this.#outflow = outflow;
    this.#allowances = allowances;
  }

  get isOver(): boolean {
    return this.#whole.isOver;
  }

  admit(type: number, flags: number, stream: number, length: number): void {
    if (!this.#settings.hasBegun && (type !== FrameType.SETTINGS || (flags & ACK) !== 0)) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'the first frame is not SETTINGS');
    }
    const { unended } = this.#headers;
    if (unended !== undefined) {
      if (type !== FrameType.CONTINUATION || stream !== unended) {
        throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'a header block is interrupted');
      }
    } else if (type === FrameType.CONTINUATION) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'CONTINUATION without a header block');
    }
    validateFrame(type, flags, stream, length);
  }

  frame(type: number, flags: number, stream: number, source: Buffer, start: number, end: number): void {
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
        return this.#departure.onGoaway();
      case FrameType.WINDOW_UPDATE:
        return this.#onWindowUpdate(stream, source, start);
      case FrameType.CONTINUATION:
        return this.#headers.onContinuation(flags, source, start, end);
      default:
        return this.#allowances.chargeIdleFrame(this.#whole.now);
    }
  }

  #onPriority(id: number, source: Buffer, start: number, end: number): void {
    const streams = this.#streams;
    this.#allowances.chargeIdleFrame(this.#whole.now);
    const isWrongLength = end - start !== 5;
    if (!isWrongLength && dependencyAt(source, start) !== id) return;
    const code = isWrongLength ? ErrorCode.FRAME_SIZE_ERROR : ErrorCode.PROTOCOL_ERROR;
    const stream = streams.get(id);
    if (stream !== undefined) return streams.resetStream(stream, code, 'stream_error');
    // An idle stream cannot be reset.
    if (streams.numbers.isIdle(id))
      throw new ConnectionError(code, 'protocol_error', 'PRIORITY of an idle stream is wrong');
    streams.resetClosed(id, code);
  }

  #onReset(id: number): void {
    const streams = this.#streams;
    if (streams.numbers.isIdle(id))
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'RST_STREAM on an idle stream');
    const stream = streams.get(id);
    if (stream === undefined) return;
    if (!stream.wasRun) this.#allowances.chargeReset(this.#whole.now);
    streams.resetByPeer(stream);
  }

  #onPing(flags: number, bytes: Buffer): void {
    if ((flags & ACK) !== 0) return this.#departure.onPingAck(bytes);
    const whole = this.#whole;
    this.#allowances.chargePing(whole.now);
    if (!whole.isOver && whole.mayControl()) this.#outflow.writer.ping(true, bytes);
  }

  #onWindowUpdate(id: number, source: Buffer, start: number): void {
    const streams = this.#streams;
    const outflow = this.#outflow;
    this.#allowances.chargeWindowUpdate();
    if (this.#whole.isOver) return;
    const increment = source.readUInt32BE(start) & MAX_31_BITS;
    if (id === 0) {
      if (increment === 0) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'WINDOW_UPDATE of 0');
      if (!outflow.widen(increment)) {
        throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error', 'connection window too large');
      }
      return;
    }
    if (streams.numbers.isIdle(id))
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'WINDOW_UPDATE on an idle stream');
    const stream = streams.get(id);
    if (stream === undefined) return;
    if (increment === 0) return streams.resetStream(stream, ErrorCode.PROTOCOL_ERROR, 'stream_error');
    if (!outflow.widenStream(stream, increment)) {
      streams.resetStream(stream, ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error');
    }
  }
}
