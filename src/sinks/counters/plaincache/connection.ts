import { type Socket, connect as connectPlain } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import type { SchedulerLike, Subscription } from 'rxjs';
import { afterTime } from '../../../streams/deadline';
import { type Server, connectOptions } from '../server-address';

/** More than any line of the protocol has, and more than any counter has: a longer value is not one. */
const MAX_BYTES = 1024;
/** A line that announces a value, in reply to `get` or to `mg`: its size in bytes. */
const VALUE_LINE = /^(?:VALUE \S+ \d+|VA) (\d+)/;

/** A request, and how the reply to it is read. */
export interface Request<T> {
  /**
   * Whether it changes nothing, so that it is sent again when the server has closed the idle connection in the
   * meantime.
   */
  readonly isRead: boolean;
  /** In Latin-1. */
  readonly text: string;
  /**
   * Takes the next line of the reply, and the value after it if it announces one.
   *
   * @returns the result when the reply is complete
   * @throws Error for a line that is not one of the reply: what follows it on the connection cannot be assigned to
   * requests
   */
  readonly onLine: (line: string, value: string | undefined) => T | undefined;
}

/** The error of a request that was not answered in time. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

export interface ConnectionContext {
  readonly server: Server;
  /** The options of a TLS connection; undefined: without TLS. */
  readonly tls: (() => ConnectionOptions) | undefined;
  /**
   * The time for each exchange, connecting included, in milliseconds. Those that are sent at once follow each other.
   */
  readonly timeoutMs: number;
  readonly scheduler: SchedulerLike;
}

interface Exchange {
  readonly request: Request<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The connection to a memcached server: opened when there is something to send, and opened again when it was lost.
 * Requests are sent at once, and replies arrive in the same order. Anything but exactly the expected replies ends the
 * connection and fails what is in flight: the server may or may not have executed it.
 */
export class Connection {
  readonly #context: ConnectionContext;
  /** What is in flight. */
  readonly #exchanges: Exchange[] = [];
  #socket: Socket | undefined;
  /** Whether the server has replied on this socket before. */
  #wasUsed = false;
  /** Whether bytes have arrived since there is something in flight. */
  #hasAnswered = false;
  #received = '';
  #timer: Subscription | undefined;
  #isClosed = false;

  constructor(context: ConnectionContext) {
    this.#context = context;
  }

  /**
   * Sends requests; resolves with their results, when all have arrived. One that changes counters is never sent a
   * second time.
   */
  send<T>(...requests: readonly Request<T>[]): Promise<T[]> {
    return Promise.all(requests.map((request) => this.#exchange(request)));
  }

  /** Closes the connection for good; what is in flight fails. */
  close(): void {
    this.#isClosed = true;
    this.#fail(new Error('the connection is closed'));
  }

  #exchange<T>(request: Request<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(new Error('the connection is closed'));
      this.#write(request);
      this.#exchanges.push({ request, resolve: resolve as (result: unknown) => void, reject });
      if (this.#exchanges.length > 1) return;
      this.#hasAnswered = false;
      this.#startTimer();
    });
  }

  #write({ text }: Request<unknown>): void {
    this.#socket ??= this.#connect();
    this.#socket.write(text, 'latin1');
  }

  #connect(): Socket {
    const { server, tls } = this.#context;
    const at = connectOptions(server);
    const socket = tls === undefined ? connectPlain(at) : connectTls({ ...at, ...tls() });
    // While something is in flight, its timer keeps the process alive.
    socket.setNoDelay(true).setEncoding('latin1').unref();
    // A socket that was given up reports its end later.
    const ifPresent = (act: () => void) => {
      if (socket === this.#socket) act();
    };
    socket.on('data', (text: string) => ifPresent(() => this.#receive(text)));
    socket.on('error', (error) => ifPresent(() => this.#lost(error)));
    for (const event of ['end', 'close']) {
      socket.on(event, () => ifPresent(() => this.#lost(new Error('the server closed the connection'))));
    }
    return socket;
  }

  #receive(text: string): void {
    this.#hasAnswered = true;
    this.#received += text;
    try {
      this.#readReplies();
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #readReplies(): void {
    const text = this.#received;
    let start = 0;
    for (;;) {
      const exchange = this.#exchanges[0];
      if (exchange === undefined) break;
      const end = text.indexOf('\r\n', start);
      if (end === -1) {
        if (text.length - start > MAX_BYTES) throw inReplyTo(exchange.request, 'a line is too long');
        break;
      }
      const line = text.slice(start, end);
      const size = line.startsWith('VA') ? VALUE_LINE.exec(line)?.[1] : undefined;
      let next = end + 2;
      if (size !== undefined) {
        if (Number(size) > MAX_BYTES)
          throw inReplyTo(exchange.request, `a value has ${size} bytes, so it is not a count`);
        next += Number(size) + 2;
        if (text.length < next) break;
        if (!text.startsWith('\r\n', next - 2))
          throw inReplyTo(exchange.request, 'a value is not as long as announced');
      }
      const result = exchange.request.onLine(line, size === undefined ? undefined : text.slice(end + 2, next - 2));
      start = next;
      if (result === undefined) continue;
      if (this.#exchanges.length === 1 && start < text.length)
        throw inReplyTo(exchange.request, 'bytes follow the last reply');
      this.#exchanges.shift();
      this.#wasUsed = true;
      exchange.resolve(result);
      this.#startTimer();
    }
    this.#received = text.slice(start);
    if (this.#exchanges.length === 0 && this.#received !== '') {
      throw new Error('the server sent bytes that no request asked for');
    }
  }

  /** Starts the time of the exchange that is next; none runs when nothing is in flight. */
  #startTimer(): void {
    this.#timer?.unsubscribe();
    if (this.#exchanges.length === 0) return;
    const { scheduler, timeoutMs } = this.#context;
    this.#timer = afterTime(scheduler, timeoutMs, {
      onElapsed: () => this.#fail(new NoAnswer(`the server did not answer within ${timeoutMs} ms`)),
    });
  }

  /** The connection could not be made, or has ended. */
  #lost(error: Error): void {
    const mayRepeat = this.#wasUsed && !this.#hasAnswered && this.#exchanges.every(({ request }) => request.isRead);
    if (!mayRepeat || this.#exchanges.length === 0) return this.#fail(error);
    // The server has closed the connection while it was idle.
    this.#abandon();
    for (const { request } of this.#exchanges) this.#write(request);
    this.#startTimer();
  }

  #fail(error: Error): void {
    this.#abandon();
    for (const { reject } of this.#exchanges.splice(0)) reject(error);
  }

  #abandon(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
    this.#wasUsed = false;
    this.#received = '';
    this.#timer?.unsubscribe();
  }
}

/** What the server sent is not the reply to a request. */
function inReplyTo({ text }: Request<unknown>, problem: string): Error {
  return new Error(`in reply to ${/^\w+/.exec(text)![0]}, ${problem}`);
}
