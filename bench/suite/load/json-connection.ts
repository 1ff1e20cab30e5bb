import net from 'node:net';
import { type CallListener, type Connection, type Messages, OK, OVER_LIMIT, Output, type Target } from './connection';

const CODES: Readonly<Record<string, number>> = { '200': OK, '429': OVER_LIMIT };
const HEAD_END = '\r\n\r\n';
/** `HTTP/1.1 200` */
const STATUS = { start: 9, end: 12 } as const;

/** Calls of `POST /json` on one HTTP/1.1 connection, one after the other; further ones wait. */
export class JsonConnection implements Connection {
  readonly opened: Promise<void>;
  readonly #socket: net.Socket;
  readonly #output: Output;
  readonly #messages: Messages;
  readonly #listener: CallListener;
  readonly #head: Buffer;
  #current: readonly [number: number, due: number] | undefined;
  #waiting: (readonly [number: number, due: number])[] = [];
  #rest: Buffer = Buffer.alloc(0);
  #state: 'open' | 'ending' | 'closed' = 'open';

  constructor(target: Target, messages: Messages, listener: CallListener) {
    this.#messages = messages;
    this.#listener = listener;
    this.#head = Buffer.from(
      `POST /json HTTP/1.1\r\nHost: ratelimit\r\nContent-Type: application/json\r\nContent-Length: ${messages.length}${HEAD_END}`,
    );
    this.#socket = net.connect({ host: target.host, port: target.port, noDelay: true });
    this.#output = new Output(this.#socket);
    this.opened = new Promise((resolve, reject) => {
      this.#socket.once('connect', resolve);
      this.#socket.once('close', () => reject(new Error(`no connection to ${target.host}:${target.port}`)));
    });
    this.opened.catch(() => undefined);
    this.#socket.on('data', (chunk) => this.#read(chunk));
    // 'close' follows.
    this.#socket.on('error', () => undefined);
    this.#socket.on('close', () => this.#onClose());
  }

  get isUsable(): boolean {
    return this.#state === 'open';
  }

  get outstanding(): number {
    return this.#waiting.length + (this.#current === undefined ? 0 : 1);
  }

  call(number: number, due: number): void {
    if (this.#current === undefined) this.#send(number, due);
    else this.#waiting.push([number, due]);
  }

  flush(): void {
    this.#output.flush();
  }

  end(): void {
    if (this.#state === 'open') this.#state = 'ending';
    if (this.outstanding === 0) this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #send(number: number, due: number): void {
    this.#current = [number, due];
    const at = this.#output.reserve(this.#head.length + this.#messages.length);
    this.#output.bytes.set(this.#head, at);
    this.#messages.write(number, this.#output.bytes, at + this.#head.length);
  }

  #read(chunk: Buffer): void {
    const now = performance.now();
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const headEnd = bytes.indexOf(HEAD_END);
    const start = headEnd + HEAD_END.length;
    const head = headEnd < 0 ? '' : bytes.toString('latin1', 0, headEnd);
    const end = start + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? NaN);
    if (headEnd < 0 || bytes.length < end) {
      this.#rest = bytes;
      return;
    }
    if (Number.isNaN(end)) throw new Error(`a response without content-length: ${head}`);
    this.#rest = bytes.subarray(end);
    this.#answered(CODES[head.slice(STATUS.start, STATUS.end)], { bytes, start, end, now });
    if (this.#state === 'ending' && this.outstanding === 0) this.#socket.end();
    this.#output.flush();
  }

  #answered(
    code: number | undefined,
    response: { readonly bytes: Buffer; readonly start: number; readonly end: number; readonly now: number },
  ): void {
    if (this.#current === undefined) throw new Error('a response without a request');
    const [number, due] = this.#current;
    this.#current = undefined;
    const next = this.#waiting.shift();
    if (next !== undefined) this.#send(...next);
    if (code === undefined) {
      this.#listener.failed(number, due);
      return;
    }
    this.#listener.onResponse?.(number, response.bytes, response.start, response.end);
    this.#listener.answered(this, number, due, code, response.now);
  }

  #onClose(): void {
    this.#state = 'closed';
    if (this.#current !== undefined) this.#listener.failed(...this.#current);
    this.#current = undefined;
    for (const [number, due] of this.#waiting.splice(0)) this.#listener.returned(number, due);
    this.#listener.closed(this);
  }
}
