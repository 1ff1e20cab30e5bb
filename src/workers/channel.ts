import type { Duplex } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import {
  Observable,
  type ObservableInput,
  type SchedulerLike,
  Subject,
  type Subscriber,
  asyncScheduler,
  defer,
  last,
  lastValueFrom,
  toArray,
} from 'rxjs';
import { DecisionError, type DecisionErrorCode } from '../counting/decision-error';
import { DirectSocket } from '../net/direct-socket';
import { afterTime } from '../streams/deadline';
import { asError } from '../text/thrown';

/** From this many unsent characters on, a channel is congested. */
const CONGESTED = 1024 * 1024;
/**
 * From this many unsent characters on, the other end is considered gone: it has not read for a long time, and memory is
 * limited. Also the longest line.
 */
const MAX_UNSENT = 64 * 1024 * 1024;
/** Characters of a result in one line. A longer one is sent in several, so that no turn of the event loop is long. */
const PIECE = 64 * 1024;

/** A line of JSON: a notification, a request with its number, or part of the answer to one. */
type Line =
  | readonly [topic: string, message: unknown]
  | readonly [method: string, parameters: unknown, number: number]
  /** The whole result. */
  | readonly [number: number, result: unknown]
  /**
   * `piece` of the text of a result, at first an empty one, which shows that the work has begun; `end`: there are no
   * more.
   */
  | readonly [number: number, text: string, kind: 'piece' | 'end']
  | readonly [number: number, error: Failure, kind: 'error'];

interface Failure {
  readonly message: string;
  readonly code?: DecisionErrorCode;
}

/** A request whose answer has not arrived. */
interface Pending {
  readonly subscriber: Subscriber<never>;
  /** The pieces of its result that have arrived. */
  text: string;
  hasBegun: boolean;
}

/**
 * One end of the pipe between the primary and a worker: notifications and requests as lines of JSON, in order, each of
 * which has the type that both ends agree on, because they are of the same version of weir. Errors of the stream, and
 * lines that cannot be read, close it.
 */
export class Channel {
  readonly #stream: Duplex;
  readonly #direct: DirectSocket;
  readonly #topics = new Map<string, Subject<unknown>>();
  readonly #methods = new Map<string, (parameters: never, number: number) => void>();
  readonly #pending = new Map<number, Pending>();
  #lastNumber = 0;
  /** What arrives before {@link start}. */
  #early: Buffer[] = [];
  /** The beginning of a line whose end has not arrived. */
  #begun = '';
  /** What is sent in the current callback, which leaves in one write, and what waits until that is sent. */
  #unwritten = '';
  #waiting: (() => void)[] = [];
  #isWriteDue = false;
  #isClosed = false;

  /**
   * @param stream from which nothing was read
   * @param scheduler measures the timeouts of requests
   */
  constructor(
    stream: Duplex,
    readonly scheduler: SchedulerLike = asyncScheduler,
  ) {
    this.#direct = new DirectSocket(stream, (chunk) => this.#early.push(chunk));
    this.#stream = this.#direct.socket;
    // 'close' follows.
    this.#stream.on('error', () => undefined);
    this.#stream.once('close', () => this.#close());
  }

  /** Whether the other end is gone. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether much waits for the other end to read it. */
  get isCongested(): boolean {
    return this.#unsent >= CONGESTED;
  }

  /** Begins to read; to be called once, when topics have their subscribers and methods are served. */
  start(): void {
    const decoder = new StringDecoder('utf8');
    this.#direct.onChunk = (chunk) => {
      // A line may have closed the channel.
      if (this.#isClosed) return;
      // What is sent in answer leaves in one write, without a callback of its own.
      const isWriteDue = this.#isWriteDue;
      this.#isWriteDue = true;
      if (!this.#read(decoder.write(chunk))) this.close();
      if (isWriteDue) return;
      if (this.#unwritten !== '' || this.#waiting.length > 0) this.#write();
      else this.#isWriteDue = false;
    };
    for (const chunk of this.#early.splice(0)) this.#direct.onChunk(chunk);
    if (this.#stream.readableEnded) this.close();
    else this.#stream.once('end', () => this.close());
  }

  /** Sends a message, which has to be JSON. After the other end is gone it does nothing. */
  notify(topic: string, message: unknown): void {
    this.#send([topic, message]);
  }

  /**
   * The messages of a topic, each delivered once. Each topic has its subscriber before the first message arrives;
   * without one, messages are dropped. Completes when the other end is gone.
   */
  notifications<Message>(topic: string): Observable<Message> {
    let messages$ = this.#topics.get(topic);
    if (messages$ === undefined) this.#topics.set(topic, (messages$ = new Subject()));
    return messages$.asObservable() as Observable<Message>;
  }

  /**
   * Requests a result on subscribing: emits it and completes, or fails with the error of the other end, a
   * `DecisionError` if it is one. Completes without a result when the other end is gone, or stands still. What the
   * other end has received it carries out, also after unsubscribing.
   *
   * @param timeoutMs for how long the other end may not begin the work; undefined: as long as it is there. How long
   *   the work itself takes is limited there.
   */
  request<Result>(method: string, parameters: unknown, timeoutMs?: number): Observable<Result> {
    return new Observable<never>((subscriber) => {
      if (this.#isClosed) return subscriber.complete();
      const number = (this.#lastNumber += 1);
      const pending: Pending = { subscriber, text: '', hasBegun: false };
      this.#pending.set(number, pending);
      if (timeoutMs !== undefined) {
        subscriber.add(
          afterTime(this.scheduler, timeoutMs, { onElapsed: () => pending.hasBegun || subscriber.complete() }),
        );
      }
      this.#send([method, parameters, number]);
      return () => this.#pending.delete(number);
    });
  }

  /** The result of a {@link request} in a list; an empty one when there is none. */
  call<Result>(method: string, parameters: unknown, timeoutMs?: number): Promise<readonly Result[]> {
    return lastValueFrom(this.request<Result>(method, parameters, timeoutMs).pipe(toArray()));
  }

  /** Answers the requests of a method with the last value of what the function returns. */
  serve(method: string, answer: (parameters: never) => ObservableInput<unknown>): void {
    this.#methods.set(method, (parameters, number) => {
      this.#send([number, '', 'piece']);
      // oxlint-disable-next-line house-style/kept-subscriptions -- the work ends by itself, waited for or not
      defer(() => answer(parameters))
        .pipe(last(null, null))
        .subscribe({
          next: (result) => void this.#sendResult(number, JSON.stringify(result ?? null)),
          error: (thrown: unknown) => this.#send([number, failureOf(thrown), 'error']),
        });
    });
  }

  /** As {@link serve}, with a result that is there at once, and short. */
  serveNow(method: string, answer: (parameters: never) => unknown): void {
    this.#methods.set(method, (parameters, number) => this.#send([number, answer(parameters)]));
  }

  /** Resolves when the system has accepted everything that was sent until now, or the channel is closed. */
  sent(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#writeSoon();
    });
  }

  /** Closes the pipe in both directions; what has not been sent is lost. */
  close(): void {
    this.#stream.destroy();
    this.#close();
  }

  async #sendResult(number: number, text: string): Promise<void> {
    for (let at = 0; at < text.length; at += PIECE) {
      this.#send([number, text.slice(at, at + PIECE), 'piece']);
      await this.sent();
    }
    this.#send([number, '', 'end']);
  }

  get #unsent(): number {
    return this.#unwritten.length + this.#stream.writableLength;
  }

  #send(line: Line): void {
    if (this.#isClosed) return;
    this.#unwritten += `${JSON.stringify(line)}\n`;
    this.#writeSoon();
    if (this.#unsent > MAX_UNSENT) this.close();
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

  /**
   * Reads a chunk, which may begin and end anywhere. @returns false when it has a line that cannot be read, so that
   * nothing after it can
   */
  #read(chunk: string): boolean {
    let at = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', at)) {
      const text = this.#begun + chunk.slice(at, end);
      this.#begun = '';
      const line = parsed(text);
      if (!Array.isArray(line) || !this.#received(line as unknown as Line)) return false;
      at = end + 1;
    }
    // Appended without being searched again, because a line may be of many chunks.
    this.#begun += chunk.slice(at);
    return this.#begun.length <= MAX_UNSENT;
  }

  /** @returns false when a line cannot be read, as {@link #read} */
  #received([first, second, third]: Line): boolean {
    if (typeof first === 'number') return this.#answered(first, second, third);
    if (third === undefined) this.#topics.get(first)?.next(second);
    else this.#methods.get(first)?.(second as never, third as number);
    return true;
  }

  #answered(number: number, value: unknown, kind: unknown): boolean {
    const pending = this.#pending.get(number);
    // The request was cancelled or has timed out: its answer is dropped.
    if (pending === undefined) return true;
    pending.hasBegun = true;
    if (kind === 'piece') {
      pending.text += String(value);
      return pending.text.length <= MAX_UNSENT;
    }
    const result = kind === undefined || kind === 'error' ? value : parsed(pending.text);
    if (result === undefined) return false;
    // The request is answered, also when what receives the answer closes the channel.
    this.#pending.delete(number);
    if (kind === 'error') {
      const { message, code } = (result ?? {}) as Partial<Failure>;
      pending.subscriber.error(code === undefined ? new Error(message) : new DecisionError(code, String(message)));
    } else {
      pending.subscriber.next(result as never);
      pending.subscriber.complete();
    }
    return true;
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#unwritten = '';
    for (const resolve of this.#waiting.splice(0)) resolve();
    for (const messages$ of this.#topics.values()) messages$.complete();
    for (const { subscriber } of [...this.#pending.values()]) subscriber.complete();
  }
}

/** What a text of JSON says; undefined for another text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function failureOf(thrown: unknown): Failure {
  const { message } = asError(thrown);
  return thrown instanceof DecisionError ? { message, code: thrown.code } : { message };
}
