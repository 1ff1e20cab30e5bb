import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorResponse } from '../errors';
import type { HttpTimeouts } from '../limits';
import { isHost } from '../validate-request';
import type { JsonCall } from './json-handler';

/** In bytes. Longer requests are left to Node's server… */
const MAX_BYTES = 65_536;
/** …as are those of which more than this, or more than some pieces, arrive before their end. */
const MAX_KEPT_BYTES = 4_096;
const MAX_PIECES = 8;

const START = 'POST /json HTTP/1.1\r\n';
const END = '\r\n\r\n';
/** A header field (RFC 9112, section 5) on one line. */
const FIELD = /([!#$%&'*+.^_`|~\dA-Za-z-]+):[\t ]*([\t -~\u0080-\u00FF]*)\r\n/y;
const LENGTH = /^\d{1,6}$/;
/** With more headers, a request is not a usual one. */
const MAX_HEADERS = 100;

export interface PlainConnectionOptions {
  readonly timeouts: HttpTimeouts;
  /** A request was received. */
  readonly began: (socket: Socket) => void;
  /** Answers a call, at once or later. Never throws. */
  readonly answer: (body: Buffer, call: JsonCall) => void;
  /** Gives the socket to Node's server, which can read again what was read of a request. */
  readonly handOver: (socket: Socket) => void;
}

/**
 * A connection with usual requests `POST /json`: of HTTP/1.1, one at a time, with a Host and a Content-Length. They are read and answered
 * here, because for each request node:http makes objects, streams and ticks that cost more than its decision. The first request of any
 * other form, valid or not, makes the connection one of Node's server, for good: whatever could be read in two ways is read by Node, with
 * the checks and limits that follow it.
 */
export class PlainConnection implements JsonCall {
  readonly socket: Socket;
  /** As a response of Node has it. */
  readonly req = { complete: true };
  readonly #options: PlainConnectionOptions;
  /** What has arrived of the next request, in how many pieces. */
  #kept: Buffer | undefined;
  #pieces = 0;
  /** Of the last request, with the length of its body: callers send the same head again. */
  #head = '';
  #bodyBytes = 0;
  #isDeciding = false;
  /** No request follows the present one. */
  #isLast = false;
  #onDisconnect: (() => void) | undefined;
  /** Since when nothing has arrived, in milliseconds of `performance.now()`, as of the last check. */
  #quietSince = performance.now();
  #hasReceived = false;
  readonly #onData = (chunk: Buffer): void => this.#receive(chunk);
  readonly #onEnd = (): void => this.socket.destroySoon();
  readonly #onClose = (): void => this.#closed();

  constructor(socket: Socket, options: PlainConnectionOptions) {
    this.socket = socket;
    this.#options = options;
    socket.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onClose);
  }

  /** Whether a response is due or not sent completely. */
  get isBusy(): boolean {
    return this.#isDeciding || this.socket.writableLength > 0;
  }

  get headersSent(): boolean {
    return !this.#isDeciding;
  }

  get writableLength(): number {
    return this.socket.writableLength;
  }

  /** Closes the connection, after the response that is due. */
  close(): void {
    this.#isLast = true;
    if (!this.#isDeciding) this.socket.destroySoon();
  }

  /** Ends a connection that waits for too long; called at intervals. @param now in milliseconds of `performance.now()` */
  check(now: number): void {
    const { headers, inactive, keepAlive } = this.#options.timeouts;
    if (this.#hasReceived || this.isBusy) {
      this.#hasReceived = false;
      this.#quietSince = now;
      return;
    }
    const quiet = now - this.#quietSince;
    // Node's server ends slow requests, and connections without any, and says so.
    if (this.#kept !== undefined) this.#handOver(this.#kept);
    else if (this.#head === '' && quiet > Math.min(headers, inactive)) this.#handOver();
    else if (this.#head !== '' && quiet > keepAlive) this.socket.destroy();
  }

  metadata(name: string): string | undefined {
    return valueOf(this.#head, name);
  }

  onDisconnect(listener: () => void): void {
    this.#onDisconnect = listener;
  }

  respond({ status, headers = {} }: Pick<ErrorResponse, 'status' | 'headers'>, json: string): void {
    if (!this.#isDeciding) return;
    this.#isDeciding = false;
    this.#onDisconnect = undefined;
    const { socket } = this;
    // As Node writes them.
    const further = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const seconds = Math.floor(this.#options.timeouts.keepAlive / 1_000);
    const connection = this.#isLast ? 'close' : `keep-alive\r\nKeep-Alive: timeout=${seconds}`;
    socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${further.join('')}Content-Type: application/json\r\nContent-Length: ` +
        `${Buffer.byteLength(json)}\r\nDate: ${dateNow()}\r\nConnection: ${connection}${END}${json}`,
    );
    if (this.#isLast) socket.destroySoon();
    else if (this.#kept !== undefined) this.#handOver(this.#kept);
    else if (socket.writableNeedDrain) socket.pause().once('drain', () => socket.resume());
  }

  #receive(chunk: Buffer): void {
    this.#hasReceived = true;
    const bytes = this.#kept === undefined ? chunk : Buffer.concat([this.#kept, chunk]);
    if (this.#isDeciding) {
      // A caller that does not wait for its responses.
      this.#kept = bytes;
      this.socket.pause();
      return;
    }
    const end = bytes.indexOf(END);
    if (end < 0) {
      this.#keep(bytes);
      return;
    }
    const body = end + END.length;
    const size = this.#readHead(bytes.toString('latin1', 0, body)) ? body + this.#bodyBytes : Infinity;
    if (size > MAX_BYTES || size < bytes.length) this.#handOver(bytes);
    else if (size > bytes.length) this.#keep(bytes);
    else {
      this.#kept = undefined;
      this.#pieces = 0;
      this.#isDeciding = true;
      this.#options.began(this.socket);
      this.#options.answer(bytes.subarray(body), this);
    }
  }

  #keep(bytes: Buffer): void {
    this.#pieces += 1;
    this.#kept = bytes;
    if (bytes.length > MAX_KEPT_BYTES || this.#pieces > MAX_PIECES) this.#handOver(bytes);
  }

  /** Whether the head is that of a usual request. */
  #readHead(head: string): boolean {
    if (head === this.#head) return true;
    const bodyBytes = bodyBytesOf(head);
    if (bodyBytes === undefined) return false;
    this.#head = head;
    this.#bodyBytes = bodyBytes;
    return true;
  }

  #handOver(bytes?: Buffer): void {
    const { socket } = this;
    socket.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose).pause();
    if (bytes !== undefined) socket.unshift(bytes);
    this.#options.handOver(socket);
  }

  #closed(): void {
    this.#isDeciding = false;
    this.#onDisconnect?.();
  }
}

/** The length of the body that the head of a usual request announces; undefined for any other head. */
function bodyBytesOf(head: string): number | undefined {
  if (!head.startsWith(START)) return undefined;
  let host: string | undefined;
  let length: string | undefined;
  let at = START.length;
  for (let count = 0; at < head.length - END.length / 2; count += 1) {
    FIELD.lastIndex = at;
    const [field, name, value] = FIELD.exec(head) ?? [];
    if (field === undefined || count === MAX_HEADERS) return undefined;
    at += field.length;
    switch (name!.toLowerCase()) {
      case 'host':
        if (host !== undefined || !isHost(value!)) return undefined;
        host = value;
        break;
      case 'content-length':
        if (length !== undefined || !LENGTH.test(value!)) return undefined;
        length = value;
        break;
      case 'connection':
        if (value!.toLowerCase() !== 'keep-alive') return undefined;
        break;
      case 'transfer-encoding':
      case 'expect':
      case 'upgrade':
      case 'proxy-connection':
        return undefined;
    }
  }
  return host === undefined || length === undefined ? undefined : Number(length);
}

/** The values of the fields with a name in lower case, joined as Node joins them. */
function valueOf(head: string, name: string): string | undefined {
  const values: string[] = [];
  for (const line of head.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon === name.length && line.slice(0, colon).toLowerCase() === name) values.push(line.slice(colon + 1).trim());
  }
  return values.join(', ') || undefined;
}

let date = { second: 0, text: '' };

/** The present time for the header Date, in seconds. */
function dateNow(): string {
  const second = Math.floor(Date.now() / 1_000);
  if (second !== date.second) date = { second, text: new Date(second * 1_000).toUTCString() };
  return date.text;
}
