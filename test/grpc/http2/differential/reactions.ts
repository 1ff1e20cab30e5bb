import { Flag, FrameType } from '../../../../src/grpc/http2/frames/protocol';
import { BlockDecoder, type Frame, ping } from '../frames';

/** The PING that follows a step; its acknowledgement is the end of the reaction. */
export function barrier(step: number): Buffer {
  return ping(`step${String(step).padStart(4, '0')}`);
}

/**
 * Reduces the frames of a server to its reaction to a step, which is the same on every server that behaves equally: `1:200` are
 * response headers on stream 1, `1:end` is END_STREAM, `1:200,end,reset 0` both and RST_STREAM, `goaway 1` ends the connection,
 * `closed` is its end without GOAWAY.
 */
export class ReactionReader {
  readonly #decoder = new BlockDecoder();
  #streams = new Map<number, string[]>();
  #goaway: number | undefined;
  #acknowledged = -1;

  read({ type, flags, stream, payload }: Frame): void {
    const events: string[] = [];
    if (type === FrameType.HEADERS) events.push(new Map(this.#decoder.decode(payload)).get(':status') ?? 'trailers');
    const canEnd = type === FrameType.HEADERS || type === FrameType.DATA;
    if (canEnd && (flags & Flag.END_STREAM) !== 0) events.push('end');
    if (type === FrameType.RST_STREAM) events.push(`reset ${payload.readUInt32BE()}`);
    if (events.length > 0) this.#streams.set(stream, [...(this.#streams.get(stream) ?? []), ...events]);
    if (type === FrameType.GOAWAY) this.#goaway = payload.readUInt32BE(4);
    if (type === FrameType.PING && (flags & Flag.ACK) !== 0) {
      const [, step] = /^step(\d{4})$/.exec(payload.toString('latin1')) ?? [];
      if (step !== undefined) this.#acknowledged = Number(step);
    }
  }

  get hasEnded(): boolean {
    return this.#goaway !== undefined;
  }

  hasAcknowledged(step: number): boolean {
    return this.#acknowledged >= step;
  }

  /** The reaction since the last call. `withoutStreams`: only what has become of the connection. */
  take(isClosed: boolean, withoutStreams: boolean): string {
    const streams = [...this.#streams].toSorted(([a], [b]) => a - b).map(([id, events]) => `${id}:${events.join(',')}`);
    this.#streams = new Map();
    const reaction = withoutStreams ? [] : streams;
    if (this.#goaway !== undefined) reaction.push(`goaway ${this.#goaway}`);
    else if (isClosed) reaction.push('closed');
    return reaction.join(' ');
  }
}
