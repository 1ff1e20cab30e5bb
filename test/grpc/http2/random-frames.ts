import { FrameType, PREFACE, Setting } from '../../../src/grpc/http2/protocol';
import {
  REQUEST,
  type SentField,
  bytesOf,
  continuation,
  data,
  frame,
  goaway,
  headers,
  huffmanString,
  indexed,
  inserted,
  integer,
  literal,
  ping,
  priority,
  rstStream,
  settings,
  settingsAck,
  sizeUpdate,
  uint32,
  windowUpdate,
} from './frames';

/** Input that peers might send: mostly valid sequences of frames, some invalid, some damaged. */
export class RandomFrames {
  readonly #random: () => number;
  constructor(random: () => number) {
    this.#random = random;
  }

  /** An integer from 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  /** The input of one connection. */
  sequence(): Buffer {
    const beginning = this.#isOnceIn(40) ? [this.#bytesOf(30)] : [PREFACE, settings(...this.#settings()), settingsAck];
    const frames = Array.from({ length: 1 + this.below(8) }, () => this.#frame());
    const bytes = Buffer.concat([...beginning, ...frames]);
    return this.#isOnceIn(3) ? this.#damaged(bytes) : bytes;
  }

  /** The bytes, split into up to four chunks. */
  cut(bytes: Buffer): Buffer[] {
    const cuts = Array.from({ length: this.below(4) }, () => this.below(bytes.length + 1)).toSorted((a, b) => a - b);
    return [0, ...cuts].map((from, at) => bytes.subarray(from, cuts[at] ?? bytes.length));
  }

  #isOnceIn(times: number): boolean {
    return this.below(times) === 0;
  }

  #pick<T>(...choices: readonly T[]): T {
    return choices[this.below(choices.length)]!;
  }

  #bytesOf(most: number): Buffer {
    return Buffer.from(Array.from({ length: this.below(most + 1) }, () => this.below(256)));
  }

  #stream(): number {
    return this.#pick(1, 1, 1, 3, 3, 5, 7, 9, 0, 2, 2 ** 31 - 1);
  }

  #number(): number {
    return this.#pick(0, 1, 5, 100, 16_384, 65_535, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, this.below(2 ** 32));
  }

  #settings(): (readonly [number, number])[] {
    return Array.from({ length: this.#isOnceIn(2) ? 0 : this.below(4) }, () =>
      this.#pick<readonly [number, number]>(
        [Setting.INITIAL_WINDOW_SIZE, this.below(70_000)],
        [Setting.HEADER_TABLE_SIZE, this.below(5_000)],
        [Setting.MAX_FRAME_SIZE, 16_384 + this.below(1_000)],
        [this.below(12), this.#isOnceIn(4) ? this.#number() : 0],
      ),
    );
  }

  #field([name, value]: SentField): Buffer {
    const kind = this.below(8);
    if (kind === 0) return inserted([name, value]);
    if (kind > 2) return literal([name, value]);
    return Buffer.concat([bytesOf(kind === 1 ? 0x10 : 0x40), huffmanString(name), huffmanString(value)]);
  }

  #block(): Buffer {
    const path = this.#pick('/', '/', '/hold', '/early', '/keep', '/big/100', '/big/70000', '');
    const fields = REQUEST.map(([name, value]) => this.#field([name, name === ':path' ? path : value]));
    while (this.#isOnceIn(2)) {
      fields.push(
        this.#pick(
          this.#field(['x-some', 'value']),
          this.#field(['content-length', String(this.below(30))]),
          this.#field(['te', 'trailers']),
          indexed(this.below(70)),
          Buffer.concat([integer(this.below(70), 0x3f, 0x40), huffmanString('y')]),
          sizeUpdate(this.below(4_200)),
          this.#bytesOf(8),
        ),
      );
    }
    if (this.#isOnceIn(8)) fields.unshift(sizeUpdate(this.below(4_097)));
    if (this.#isOnceIn(12)) fields.reverse();
    return Buffer.concat(fields);
  }

  #frame(): Buffer {
    const stream = this.#stream();
    const padding = this.#isOnceIn(6) ? this.below(40) : undefined;
    const kind = this.below(16);
    if (kind < 4) {
      const [endStream, endHeaders] = [!this.#isOnceIn(3), !this.#isOnceIn(10)];
      const dependency = this.#isOnceIn(8) ? this.#stream() : undefined;
      return headers(stream, this.#block(), { endStream, endHeaders, padding, dependency });
    }
    if (kind === 4) {
      const block = this.#block();
      const middle = this.below(block.length);
      const begun = headers(stream, block.subarray(0, middle), { endHeaders: false, endStream: this.#isOnceIn(2) });
      return Buffer.concat([begun, continuation(stream, block.subarray(middle), !this.#isOnceIn(6))]);
    }
    if (kind < 8) {
      const body = Buffer.alloc(this.#isOnceIn(6) ? this.below(16_384) : this.below(40));
      return data(stream, body, this.#isOnceIn(2), padding);
    }
    const others = [
      () => rstStream(stream, this.#number()),
      () => windowUpdate(stream, this.#isOnceIn(3) ? this.#number() : 1 + this.below(70_000)),
      () => settings(...this.#settings()),
      () => ping('pingping', this.#pick(0, 0, 1)),
      () => priority(stream, this.#stream()),
      () => (this.#isOnceIn(3) ? goaway(this.#stream(), this.#number()) : settingsAck),
      () => frame(this.below(14), this.below(256), stream, this.#bytesOf(40)),
      () =>
        frame(
          this.#pick(FrameType.SETTINGS, FrameType.PING, FrameType.GOAWAY),
          0,
          0,
          Buffer.concat([uint32(this.#number()), this.#bytesOf(4)]),
        ),
    ];
    return others[kind - 8]!();
  }

  /** The bytes with one to three damages: a byte or bit changed, some bytes lost or inserted. */
  #damaged(bytes: Buffer): Buffer {
    let result = Buffer.from(bytes);
    for (let damages = 1 + this.below(3); damages > 0; damages -= 1) {
      const at = this.below(result.length);
      const kind = this.below(4);
      if (kind === 0) result[at] = this.below(256);
      else if (kind === 1) result[at]! ^= 1 << this.below(8);
      else {
        const kept = kind === 2 ? at + 1 + this.below(12) : at;
        const more = kind === 2 ? [] : [this.#bytesOf(10)];
        result = Buffer.concat([result.subarray(0, at), ...more, result.subarray(kept)]);
      }
      if (result.length === 0) return bytes;
    }
    return result;
  }
}
