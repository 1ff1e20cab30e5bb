import { Duplex } from 'node:stream';
import { Channel } from '../../../src/workers/channel';

/**
 * The two ends of a channel in one process, as if a pipe were between them. Both read from the next turn of the event
 * loop on, when their topics have subscribers.
 *
 * @param chunkBytes the length of the chunks in which what is written arrives; by default each write arrives as one
 * @param held what is written arrives when this has resolved
 */
export function channelPair(chunkBytes?: number, held?: () => Promise<unknown>) {
  const [one, other] = duplexPair(chunkBytes, held);
  const pair = { primary: new Channel(one), worker: new Channel(other) };
  setImmediate(() => {
    pair.primary.start();
    pair.worker.start();
  });
  return pair;
}

/** Two streams, each of which reads what is written to the other. */
export function duplexPair(
  chunkBytes = Number.MAX_SAFE_INTEGER,
  held?: () => Promise<unknown>,
): readonly [Duplex, Duplex] {
  const [one, other] = [new PairedStream(chunkBytes, held), new PairedStream(chunkBytes, held)];
  one.connect(other);
  other.connect(one);
  return [one, other];
}

/** A write is accepted when the other end has taken it, so that an end that does not read holds the other up. */
class PairedStream extends Duplex {
  #other: PairedStream | undefined;
  #resume: () => void = () => undefined;

  constructor(
    readonly chunkBytes: number,
    readonly held: (() => Promise<unknown>) | undefined,
  ) {
    super({ allowHalfOpen: false });
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
    const copy = Buffer.from(bytes);
    const chunks = Array.from({ length: Math.ceil(copy.length / this.chunkBytes) }, (_, at) =>
      copy.subarray(at * this.chunkBytes, (at + 1) * this.chunkBytes),
    );
    setImmediate(async () => {
      if (this.held !== undefined) await this.held();
      this.#other?.receive(chunks, done);
    });
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
