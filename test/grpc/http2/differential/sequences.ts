import { createHash } from 'node:crypto';
import { Flag, FrameType, MAX_31_BITS, PREFACE } from '../../../../src/grpc/http2/protocol';
import {
  BlockDecoder,
  type Frame,
  block,
  continuation,
  data,
  frame,
  get,
  headers,
  hello,
  indexed,
  inserted,
  ping,
  priority,
  request,
  rstStream,
  settings,
  streamOf,
  times,
  windowUpdate,
} from '../frames';
import { RandomFrames } from '../random-frames';
import { REQUIREMENTS } from '../requirements';
import { seededRandom } from '../../../support/data/seeded-random';

const RANDOM_SEQUENCES = 5_000;
const HEADER_BYTES = 9;
const FRAME_NAMES = Object.keys(FrameType);

/** A part of a client's input, after which the reaction of the server is read. */
export interface Step {
  readonly bytes: Buffer;
  /** The type of its last frame. */
  readonly frame: string;
  /** The stream of that frame; -1 without a frame. */
  readonly stream: number;
  /** It ends with a complete frame outside of a header block, so that a PING can follow. */
  readonly isComplete: boolean;
}

/**
 * The input of one connection, which is sent to both servers. `isFlood`: only what becomes of the connection is
 * compared.
 */
export type Sequence = { name: string; bytes: Buffer; steps: readonly Step[]; isFlood: boolean };

const MANY = 20_000;
const keptRequest = headers(1, request('/keep'));

/** What attackers send, by its description. The server must limit its cost or be able to bear it. */
const FLOODS: Readonly<Record<string, Buffer>> = {
  'PING frames': times(MANY, () => ping()),
  'SETTINGS frames': times(MANY, () => settings()),
  'PRIORITY frames': times(MANY, (at) => priority(streamOf(at), 0)),
  'frames of an unknown type': times(MANY, () => frame(0xfa, 0, 0)),
  'WINDOW_UPDATE frames of 1': times(MANY, () => windowUpdate(0, 1)),
  'empty DATA frames': Buffer.concat([keptRequest, times(MANY, () => data(1, ''))]),
  'DATA frames of one byte': Buffer.concat([keptRequest, times(MANY, () => data(1, 'x'))]),
  'requests that are reset at once': times(MANY, (at) =>
    Buffer.concat([get(streamOf(at), '/hold'), rstStream(streamOf(at))]),
  ),
  'malformed requests': times(MANY, (at) => get(streamOf(at), '')),
  'CONTINUATION frames': Buffer.concat([
    headers(1, request(), { endHeaders: false }),
    times(MANY, (at) => continuation(1, block([['x', 'y'.repeat(20)]]), at === MANY - 1)),
  ]),
  'references to a header of 4,000 bytes': headers(
    1,
    Buffer.concat([request(), inserted(['x', 'y'.repeat(4_000)]), times(10_000, () => indexed(62))]),
    { endStream: true },
  ),
};

/**
 * Splits the input of a connection into frames. A header block is one step, and the preface belongs to the first frame.
 */
function stepsOf(bytes: Buffer): readonly Step[] {
  if (!bytes.subarray(0, PREFACE.length).equals(PREFACE))
    return [{ bytes, frame: 'no preface', stream: -1, isComplete: false }];
  const steps: Step[] = [];
  let start = 0;
  let at = PREFACE.length;
  let isInBlock = false;
  let name = 'unknown';
  let stream = -1;
  while (bytes.length - at >= HEADER_BYTES) {
    const end = at + HEADER_BYTES + bytes.readUIntBE(at, 3);
    const type = bytes[at + 3]!;
    if (end > bytes.length) break;
    if (type === FrameType.HEADERS || type === FrameType.CONTINUATION || type === FrameType.PUSH_PROMISE) {
      isInBlock = (bytes[at + 4]! & Flag.END_HEADERS) === 0;
    }
    name = FRAME_NAMES[type] ?? 'unknown';
    stream = bytes.readUInt32BE(at + 5) & MAX_31_BITS;
    at = end;
    if (isInBlock) continue;
    steps.push({ bytes: bytes.subarray(start, at), frame: name, stream, isComplete: true });
    start = at;
  }
  if (start === bytes.length) return steps;
  return [...steps, { bytes: bytes.subarray(start), frame: name, stream, isComplete: false }];
}

function inSteps(name: string, bytes: Buffer): Sequence {
  return { name, bytes, steps: stepsOf(bytes), isFlood: false };
}

/** Every case of requirements.ts, floods, and random sequences, a third of them damaged. */
export function sequences(): readonly Sequence[] {
  const frames = new RandomFrames(seededRandom('differential'));
  return [
    ...REQUIREMENTS.map(({ reference, title, before, bytes }) =>
      inSteps(`${reference}: ${title}`, Buffer.concat([before, bytes])),
    ),
    ...Object.entries(FLOODS).map(([name, flood]) => {
      const bytes = Buffer.concat([hello(), flood]);
      return { name, bytes, steps: [{ bytes, frame: 'flood', stream: 0, isComplete: true }], isFlood: true };
    }),
    ...Array.from({ length: RANDOM_SEQUENCES }, (_, at) => inSteps(`random ${at}`, frames.sequence())),
  ];
}

/** Changes with the sequence, which must then be recorded again. */
export function keyOf({ bytes }: Sequence): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 8);
}

/** The PING that follows a step; its acknowledgement is the end of the reaction. */
export function barrier(step: number): Buffer {
  return ping(`step${String(step).padStart(4, '0')}`);
}

/**
 * Reduces the frames of a server to its reaction to a step, which is the same on every server that behaves equally:
 * `1:200` are response headers on stream 1, `1:end` is END_STREAM, `1:200,end,reset 0` both and RST_STREAM, `goaway 1`
 * ends the connection, `closed` is its end without GOAWAY.
 */
export class ReactionReader {
  readonly #decoder = new BlockDecoder();
  #streams = new Map<number, string[]>();
  #goaway: number | undefined;
  #acknowledged = -1;

  read({ type, flags, stream, payload }: Frame): void {
    const events: string[] = [];
    const status = type === FrameType.HEADERS ? new Map(this.#decoder.decode(payload)).get(':status') : undefined;
    if (status !== undefined) events.push(status);
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
