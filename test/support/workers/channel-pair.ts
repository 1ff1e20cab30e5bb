import { Duplex } from 'node:stream';
import { Channel } from '../../../src/workers/channel';

/** The two ends of a channel in one process, as if a pipe were between them. */
interface ChannelPair {
  readonly primary: Channel;
  readonly worker: Channel;
}

interface PairOptions {
  /** Cuts what is written into the chunks that arrive; by default each write arrives as one. */
  readonly cut?: (bytes: Buffer) => readonly Buffer[];
}

/** Both ends read from the next turn of the event loop on, when their topics have subscribers. */
export function channelPair(options: PairOptions = {}): ChannelPair {
  const [one, other] = duplexPair(options);
  const pair = { primary: new Channel(one), worker: new Channel(other) };
  setImmediate(() => {
    pair.primary.start();
    pair.worker.start();
  });
  return pair;
}

/** Two streams, each of which reads what is written to the other. */
export function duplexPair(options: PairOptions = {}): readonly [Duplex, Duplex] {
  const one = new PairedStream(options);
  const other = new PairedStream(options);
  one.connect(other);
  other.connect(one);
  return [one, other];
}

/** A write is accepted when the other end has taken it, so that an end that does not read holds the other up. */
class PairedStream extends Duplex {
  readonly #cut: (bytes: Buffer) => readonly Buffer[];
  #other: PairedStream | undefined;
  #resume: () => void = () => undefined;

  constructor({ cut = (whole) => [whole] }: PairOptions) {
    super({ allowHalfOpen: false });
    this.#cut = cut;
  }

  connect(other: PairedStream): void {
    this.#other = other;
  }

  override _read(): void {
    const resume = this.#resume;
    this.#resume = () => undefined;
    resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const chunks = this.#cut(Buffer.from(bytes));
    setImmediate(() => this.#other?.receive(chunks, done));
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const other = this.#other;
    setImmediate(() => other?.receive([null], () => undefined));
    done(error);
  }

  receive(chunks: readonly (Buffer | null)[], done: () => void): void {
    if (this.destroyed) return done();
    let hasRoom = true;
    for (const chunk of chunks) hasRoom = this.push(chunk);
    if (hasRoom) return done();
    this.#resume = done;
    return undefined;
  }
}
