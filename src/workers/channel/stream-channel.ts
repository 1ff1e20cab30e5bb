import type { Duplex } from 'node:stream';
import { AsyncSubject, type Observable, Subject } from 'rxjs';
import type { Channel } from './channel';
import { FrameReader, encodeFrame } from './frames';
import type { Topic } from './topics';

/** From this many unsent bytes on, a channel is congested. */
const CONGESTED_BYTES = 1024 * 1024;
/** From this many unsent bytes on, the other end is considered gone: it has not read for a long time, and memory is limited. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;

/** A channel over a stream of bytes in both directions. Errors of the stream close the channel. */
export class StreamChannel implements Channel {
  readonly #stream: Duplex;
  readonly #topics = new Map<Topic, Subject<Buffer>>();
  readonly #closed$ = new AsyncSubject<void>();
  readonly #drained$ = new Subject<void>();
  /** The frames of the current callback. */
  #unwritten: Buffer[] = [];
  #unwrittenBytes = 0;
  #isClosed = false;

  constructor(stream: Duplex) {
    this.#stream = stream;
    // 'close' follows.
    stream.on('error', () => undefined);
    stream.once('close', () => this.#close());
  }

  get closed$(): Observable<void> {
    return this.#closed$.asObservable();
  }

  get drained$(): Observable<void> {
    return this.#drained$.asObservable();
  }

  get isCongested(): boolean {
    return this.#unsentBytes >= CONGESTED_BYTES;
  }

  /** Begins to read; to be called once, when the topics have their subscribers. */
  start(): void {
    const reader = new FrameReader((topic, body) => this.#topics.get(topic)?.next(body));
    this.#stream.on('data', (chunk: Buffer) => {
      // A frame may have closed the channel.
      if (this.#isClosed) return;
      // After an invalid frame, the others cannot be found either.
      if (!reader.read(chunk)) this.close();
    });
    this.#stream.once('end', () => this.close());
  }

  send(topic: Topic, body: Uint8Array | string): void {
    const frame = encodeFrame(topic, body);
    if (this.#isClosed) return;
    if (this.#unwritten.length === 0) process.nextTick(() => this.#write());
    this.#unwritten.push(frame);
    this.#unwrittenBytes += frame.length;
    if (this.#unsentBytes > MAX_UNSENT_BYTES) this.close();
  }

  frames(topic: Topic): Observable<Buffer> {
    let frames$ = this.#topics.get(topic);
    if (frames$ === undefined) this.#topics.set(topic, (frames$ = new Subject()));
    return frames$.asObservable();
  }

  /** Closes the pipe in both directions; what has not been sent is lost. */
  close(): void {
    this.#stream.destroy();
    this.#close();
  }

  get #unsentBytes(): number {
    return this.#unwrittenBytes + this.#stream.writableLength;
  }

  #write(): void {
    if (this.#isClosed) return;
    const frames = this.#unwritten;
    this.#unwritten = [];
    this.#unwrittenBytes = 0;
    const bytes = frames.length === 1 ? (frames[0] as Buffer) : Buffer.concat(frames);
    this.#stream.write(bytes, () => {
      if (this.#unsentBytes === 0) this.#drained$.next();
    });
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#unwritten = [];
    this.#unwrittenBytes = 0;
    for (const frames$ of this.#topics.values()) frames$.complete();
    this.#drained$.complete();
    this.#closed$.next();
    this.#closed$.complete();
  }
}
