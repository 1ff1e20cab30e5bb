import type { Duplex } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { AsyncSubject, type Observable, Subject } from 'rxjs';
import { DirectSocket } from '../net/direct-socket';

/** What a message is about; the file that sends it has its type. */
export type Topic = 'control' | 'rules' | 'counters' | 'reservations' | 'statistics' | 'forget';

/** From this many unsent characters on, a channel is congested. */
const CONGESTED = 1024 * 1024;
/**
 * From this many unsent characters on, the other end is considered gone: it has not read for a long time, and memory is limited. Also the
 * longest message.
 */
const MAX_UNSENT = 64 * 1024 * 1024;

/**
 * One end of the pipe between the primary and a worker: messages as lines of JSON, in order. The type of a message is the agreement of
 * both ends, which are of the same version of weir. Errors of the stream, and lines that are no messages, close the channel.
 */
export class Channel {
  readonly #stream: Duplex;
  readonly #direct: DirectSocket;
  readonly #receivers = new Map<Topic, (message: never) => void>();
  readonly #topics = new Map<Topic, Subject<unknown>>();
  readonly #closed$ = new AsyncSubject<void>();
  /** What arrives before {@link start}. */
  #early: Buffer[] = [];
  /** What is sent in the current callback, which leaves in one write, and what waits until that is sent. */
  #unwritten = '';
  #waiting: (() => void)[] = [];
  #isWriteDue = false;
  #isClosed = false;

  /** @param stream from which nothing was read */
  constructor(stream: Duplex) {
    this.#direct = new DirectSocket(stream, (chunk) => this.#early.push(chunk));
    this.#stream = this.#direct.socket;
    // 'close' follows.
    this.#stream.on('error', () => undefined);
    this.#stream.once('close', () => this.#close());
  }

  /** Emits once when the other end is gone, also to those who subscribe later, and completes. */
  get closed$(): Observable<void> {
    return this.#closed$.asObservable();
  }

  /** Whether much waits for the other end to read it. */
  get isCongested(): boolean {
    return this.#unsent >= CONGESTED;
  }

  /** Begins to read; to be called once, when the topics have their subscribers. */
  start(): void {
    const decoder = new StringDecoder('utf8');
    const reader = new MessageReader(([topic, message]) => this.#receivers.get(topic)?.(message as never));
    this.#direct.onChunk = (chunk) => {
      // A message may have closed the channel.
      if (this.#isClosed) return;
      // What is sent in answer leaves in one write, without a callback of its own.
      const isWriteDue = this.#isWriteDue;
      this.#isWriteDue = true;
      if (!reader.read(decoder.write(chunk))) this.close();
      if (isWriteDue) return;
      if (this.#unwritten !== '' || this.#waiting.length > 0) this.#write();
      else this.#isWriteDue = false;
    };
    for (const chunk of this.#early.splice(0)) this.#direct.onChunk(chunk);
    if (this.#stream.readableEnded) this.close();
    else this.#stream.once('end', () => this.close());
  }

  /** Sends a message, which has to be JSON. After the other end is gone it does nothing. */
  send(topic: Topic, message: unknown): void {
    if (this.#isClosed) return;
    this.#unwritten += `${JSON.stringify([topic, message])}\n`;
    this.#writeSoon();
    if (this.#unsent > MAX_UNSENT) this.close();
  }

  /** Resolves when the system has accepted everything that was sent until now, or the channel is closed. */
  sent(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#writeSoon();
    });
  }

  /**
   * The messages of a topic, each delivered once. Each topic has its subscriber before the first message arrives; without one, messages
   * are dropped. Completes when the other end is gone.
   */
  messages<Message>(topic: Topic): Observable<Message> {
    let messages$ = this.#topics.get(topic);
    if (messages$ === undefined) {
      const subject = new Subject<unknown>();
      this.#topics.set(topic, (messages$ = subject));
      this.#receivers.set(topic, (message) => subject.next(message));
    }
    return messages$.asObservable() as Observable<Message>;
  }

  /** As {@link messages}, for a topic with one receiver and a message for each turn of the event loop. */
  receive(topic: Topic, receiver: (message: never) => void): void {
    this.#receivers.set(topic, receiver);
  }

  /** Closes the pipe in both directions; what has not been sent is lost. */
  close(): void {
    this.#stream.destroy();
    this.#close();
  }

  get #unsent(): number {
    return this.#unwritten.length + this.#stream.writableLength;
  }

  #writeSoon(): void {
    if (this.#isWriteDue) return;
    this.#isWriteDue = true;
    process.nextTick(() => this.#write());
  }

  #write(): void {
    this.#isWriteDue = false;
    if (this.#isClosed) return;
    const [lines, waiting] = [this.#unwritten, this.#waiting];
    this.#unwritten = '';
    this.#waiting = [];
    this.#stream.write(lines, () => waiting.forEach((resolve) => resolve()));
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#unwritten = '';
    for (const resolve of this.#waiting.splice(0)) resolve();
    for (const messages$ of this.#topics.values()) messages$.complete();
    this.#closed$.next();
    this.#closed$.complete();
  }
}

/** Finds the messages in a sequence of chunks, which may begin and end anywhere. */
class MessageReader {
  readonly #onMessage: (message: readonly [Topic, unknown]) => void;
  /** The beginning of a line whose end has not arrived. */
  #begun = '';

  constructor(onMessage: (message: readonly [Topic, unknown]) => void) {
    this.#onMessage = onMessage;
  }

  /** @returns false when the text is no messages; what follows it cannot be read either */
  read(chunk: string): boolean {
    let at = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', at)) {
      const line = this.#begun + chunk.slice(at, end);
      this.#begun = '';
      if (!this.#deliver(line)) return false;
      at = end + 1;
    }
    // Appended without being searched again, because a line may be of many chunks.
    this.#begun += chunk.slice(at);
    return this.#begun.length <= MAX_UNSENT;
  }

  #deliver(line: string): boolean {
    let message: readonly [Topic, unknown];
    try {
      message = JSON.parse(line) as readonly [Topic, unknown];
    } catch {
      return false;
    }
    this.#onMessage(message);
    return true;
  }
}
