import net from 'node:net';
import tls from 'node:tls';
import { ErrorCode, FRAME_HEADER_BYTES, Flag, FrameType, Setting } from '../../../src/grpc/http2/protocol';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import { PROFILES, SETTINGS_ACK, frame, opening } from './frames.cjs';
import { CallTable, NO_CODE } from './call-table';
import { type CallListener, type Connection, type Messages, Output, type Target } from './connection';

/** The compression flag and the length of a gRPC message. */
const PREFIX_BYTES = 5;
/** Received bytes after which the connection's window is extended. */
const GRANT_BYTES = 2 ** 28;
/** `:scheme: http` and `:scheme: https` of HPACK's static table, which are the second byte of a header block. */
const SCHEME = { at: 1, https: 0x87 } as const;

/**
 * gRPC calls on one connection, written and read as frames: a call costs the generator a fraction of what it costs a
 * server. It keeps to the server's limits of concurrent streams and of the connection window; calls over them wait.
 */
export class GrpcConnection implements Connection {
  readonly opened: Promise<void>;
  readonly #socket: net.Socket;
  readonly #output: Output;
  readonly #messages: Messages;
  readonly #listener: CallListener;
  /** The header block of a call by its order. */
  readonly #blocks: (order: number) => Buffer;
  readonly #calls = new CallTable();
  /** Calls that wait, as pairs of number and due time. */
  #waiting: (readonly [number: number, due: number])[] = [];
  /** The beginnings of responses that came in several DATA frames, by the order of their call. */
  readonly #parts = new Map<number, Buffer>();
  #rest: Buffer = Buffer.alloc(0);
  #window = 65_535;
  #maxStreams = 2 ** 31;
  #received = 0;
  #state: 'open' | 'ending' | 'closed' = 'open';

  constructor(target: Target, messages: Messages, listener: CallListener) {
    this.#messages = messages;
    this.#listener = listener;
    this.#blocks = headerBlocks(target);
    this.#socket = connect(target);
    this.#output = new Output(this.#socket);
    this.#socket.setNoDelay();
    this.#socket.write(opening());
    this.opened = new Promise((resolve, reject) => {
      this.#socket.once('data', () => resolve());
      this.#socket.once('close', () => reject(new Error(`no connection to ${target.host}:${target.port}`)));
    });
    this.opened.catch(() => undefined);
    this.#socket.on('data', (chunk) => this.#read(chunk));
    // 'close' follows.
    this.#socket.on('error', () => undefined);
    this.#socket.on('end', () => this.#socket.end());
    this.#socket.on('close', () => this.#onClose());
  }

  get isUsable(): boolean {
    return this.#state === 'open';
  }

  get outstanding(): number {
    return this.#calls.size + this.#waiting.length;
  }

  call(number: number, due: number): void {
    if (this.#waiting.length > 0 || !this.#hasRoom()) this.#waiting.push([number, due]);
    else this.#send(number, due);
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

  #hasRoom(): boolean {
    return this.#calls.size < this.#maxStreams && this.#window >= PREFIX_BYTES + this.#messages.length;
  }

  #send(number: number, due: number): void {
    const block = this.#blocks(this.#calls.next);
    const stream = 2 * this.#calls.next + 1;
    const body = PREFIX_BYTES + this.#messages.length;
    const at = this.#output.reserve(2 * FRAME_HEADER_BYTES + block.length + body);
    const { bytes } = this.#output;
    putFrameHeader(bytes, at, block.length, FrameType.HEADERS, Flag.END_HEADERS, stream);
    bytes.set(block, at + FRAME_HEADER_BYTES);
    const data = at + FRAME_HEADER_BYTES + block.length;
    putFrameHeader(bytes, data, body, FrameType.DATA, Flag.END_STREAM, stream);
    const message = data + FRAME_HEADER_BYTES;
    bytes[message] = 0;
    bytes.writeUInt32BE(this.#messages.length, message + 1);
    this.#messages.write(number, bytes, message + PREFIX_BYTES);
    this.#window -= body;
    this.#calls.add(number, due);
  }

  #sendWaiting(): void {
    if (this.#waiting.length === 0) return;
    let sent = 0;
    for (; sent < this.#waiting.length && this.#hasRoom(); sent += 1) this.#send(...this.#waiting[sent]!);
    if (sent > 0) this.#waiting = this.#waiting.slice(sent);
  }

  #read(chunk: Buffer): void {
    const now = performance.now();
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= FRAME_HEADER_BYTES) {
      const length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
      const end = at + FRAME_HEADER_BYTES + length;
      if (bytes.length < end) break;
      const stream = bytes.readUInt32BE(at + 5);
      this.#frame(bytes[at + 3]!, bytes[at + 4]!, stream, { bytes, start: at + FRAME_HEADER_BYTES, end, now });
      at = end;
    }
    this.#rest = bytes.subarray(at);
    this.#sendWaiting();
    this.#output.flush();
    if (this.#state === 'ending' && this.outstanding === 0) this.#socket.end();
  }

  #frame(type: number, flags: number, stream: number, payload: Payload): void {
    const order = (stream - 1) / 2;
    if (type === FrameType.DATA) this.#data(order, payload);
    if (type === FrameType.DATA || type === FrameType.HEADERS) {
      if ((flags & Flag.END_STREAM) !== 0) this.#ended(order, payload.now);
      return;
    }
    const { bytes, start, end } = payload;
    if (type === FrameType.SETTINGS && (flags & Flag.ACK) === 0) this.#settings(bytes.subarray(start, end));
    else if (type === FrameType.PING && (flags & Flag.ACK) === 0) {
      this.#socket.write(frame(FrameType.PING, Flag.ACK, 0, bytes.subarray(start, end)));
    } else if (type === FrameType.WINDOW_UPDATE && stream === 0) this.#window += bytes.readUInt32BE(start);
    else if (type === FrameType.GOAWAY) this.#goAway(bytes.readUInt32BE(start));
    else if (type === FrameType.RST_STREAM) this.#reset(order, bytes.readUInt32BE(start));
  }

  #data(order: number, { bytes, start, end }: Payload): void {
    this.#received += end - start;
    if (this.#received >= GRANT_BYTES) {
      const increment = Buffer.alloc(4);
      increment.writeUInt32BE(this.#received);
      this.#socket.write(frame(FrameType.WINDOW_UPDATE, 0, 0, increment));
      this.#received = 0;
    }
    const part = this.#parts.get(order);
    if (part === undefined && isWhole(bytes, start, end)) {
      this.#response(order, bytes, start + PREFIX_BYTES, end);
      return;
    }
    const joined = Buffer.concat([part ?? Buffer.alloc(0), bytes.subarray(start, end)]);
    if (isWhole(joined, 0, joined.length)) {
      this.#parts.delete(order);
      this.#response(order, joined, PREFIX_BYTES, joined.length);
    } else if (joined.length > 0) this.#parts.set(order, joined);
  }

  #response(order: number, bytes: Buffer, start: number, end: number): void {
    const number = this.#calls.number(order);
    if (number < 0) return;
    // The field `overall_code` is the first of a message, and absent when it is 0.
    this.#calls.setCode(order, bytes[start] === 0x08 ? bytes[start + 1]! : 0);
    this.#listener.onResponse?.(number, bytes, start, end);
  }

  #ended(order: number, now: number): void {
    const number = this.#calls.number(order);
    if (number < 0) return;
    const due = this.#calls.due(order);
    const code = this.#calls.code(order);
    this.#calls.remove(order);
    if (code !== NO_CODE) {
      this.#listener.answered(this, number, due, code, now);
      return;
    }
    this.#parts.delete(order);
    // An error has a status and no message.
    this.#listener.failed(number, due);
  }

  #settings(payload: Buffer): void {
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      if (payload.readUInt16BE(at) === Setting.MAX_CONCURRENT_STREAMS) this.#maxStreams = payload.readUInt32BE(at + 2);
    }
    this.#socket.write(SETTINGS_ACK);
  }

  /** The calls after the last stream are not processed. */
  #goAway(lastStream: number): void {
    if (this.#state === 'open') this.#state = 'ending';
    this.#calls.removeFrom(Math.floor((lastStream + 1) / 2), this.#listener.returned.bind(this.#listener));
    for (const [number, due] of this.#waiting.splice(0)) this.#listener.returned(number, due);
  }

  #reset(order: number, code: number): void {
    const number = this.#calls.number(order);
    if (number < 0) return;
    const due = this.#calls.due(order);
    this.#calls.remove(order);
    if (code === ErrorCode.REFUSED_STREAM) this.#listener.returned(number, due);
    else this.#listener.failed(number, due);
  }

  #onClose(): void {
    this.#state = 'closed';
    this.#calls.removeFrom(0, this.#listener.failed.bind(this.#listener));
    // They were never sent.
    for (const [number, due] of this.#waiting.splice(0)) this.#listener.returned(number, due);
    this.#listener.closed(this);
  }
}

interface Payload {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  readonly now: number;
}

function connect({ host, port, ca }: Target): net.Socket {
  return ca === undefined
    ? net.connect({ host, port })
    : tls.connect({ host, port, ca, ALPNProtocols: ['h2'], ...(net.isIP(host) === 0 && { servername: host }) });
}

function headerBlocks({ ca, headers = 'envoy' }: Target): (order: number) => Buffer {
  const blocks = PROFILES[headers](SHOULD_RATE_LIMIT);
  if (ca === undefined) return blocks;
  return (order) => {
    const block = blocks(order);
    block[SCHEME.at] = SCHEME.https;
    return block;
  };
}

/** Whether these bytes are a whole message, with its prefix. */
function isWhole(bytes: Buffer, start: number, end: number): boolean {
  return end - start >= PREFIX_BYTES && end - start === PREFIX_BYTES + bytes.readUInt32BE(start + 1);
}

function putFrameHeader(bytes: Buffer, at: number, length: number, type: number, flags: number, stream: number): void {
  bytes[at] = length >>> 16;
  bytes[at + 1] = length >>> 8;
  bytes[at + 2] = length;
  bytes[at + 3] = type;
  bytes[at + 4] = flags;
  bytes.writeUInt32BE(stream, at + 5);
}
