// A load client on raw sockets. It only writes prepared frames and counts ended responses, so that it is not the bottleneck.
import net from 'node:net';
import { SETTINGS_ACK, opening } from './frames.cjs';

const DATA = 0;
const HEADERS = 1;
const SETTINGS = 4;
const GOAWAY = 7;
const RST_STREAM = 3;
const END_STREAM = 1;
const END_HEADERS = 4;

const HEADER_BYTES = 9;
const PREFIX_BYTES = 5;

/** A message with gRPC's length prefix. */
export function withPrefix(message) {
  const body = Buffer.alloc(PREFIX_BYTES + message.length);
  body.writeUInt32BE(message.length, 1);
  message.copy(body, PREFIX_BYTES);
  return body;
}

/** One connection that sends calls and counts responses. `blocks(n)`, `bodies(n)`: header block and prefixed message of its n-th call. */
export class Caller {
  calls = 0;
  answered = 0;
  #rest = Buffer.alloc(0);
  #blocks;
  #bodies;
  #onAnswer;

  constructor(port, { blocks, bodies, onAnswer }) {
    this.#blocks = blocks;
    this.#bodies = bodies;
    this.#onAnswer = onAnswer;
    this.socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.write(opening());
    this.socket.on('data', (chunk) => this.#read(chunk));
    this.socket.on('error', (error) => {
      throw error;
    });
  }

  /** Sends this many calls in one write. */
  call(count) {
    const first = this.calls;
    this.calls += count;
    let length = 0;
    for (let call = first; call < this.calls; call += 1) {
      length += 2 * HEADER_BYTES + this.#blocks(call).length + this.#bodies(call).length;
    }
    const bytes = Buffer.allocUnsafe(length);
    let at = 0;
    function put(type, flags, call, payload) {
      bytes.writeUIntBE(payload.length, at, 3);
      bytes[at + 3] = type;
      bytes[at + 4] = flags;
      bytes.writeUInt32BE(2 * call + 1, at + 5);
      payload.copy(bytes, at + HEADER_BYTES);
      at += HEADER_BYTES + payload.length;
    }
    for (let call = first; call < this.calls; call += 1) {
      put(HEADERS, END_HEADERS, call, this.#blocks(call));
      put(DATA, END_STREAM, call, this.#bodies(call));
    }
    this.socket.write(bytes);
  }

  #read(chunk) {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    let ended = 0;
    while (bytes.length - at >= 9) {
      const length = bytes.readUIntBE(at, 3);
      if (bytes.length - at < 9 + length) break;
      const type = bytes[at + 3];
      const flags = bytes[at + 4];
      if (type === HEADERS && (flags & END_STREAM) !== 0) ended += 1;
      else if (type === SETTINGS && (flags & 1) === 0) this.socket.write(SETTINGS_ACK);
      else if (type === GOAWAY || type === RST_STREAM)
        throw new Error(`the server sent GOAWAY or RST_STREAM (frame type ${type})`);
      at += 9 + length;
    }
    this.#rest = bytes.subarray(at);
    this.answered += ended;
    if (ended > 0) this.#onAnswer?.(this, ended);
  }
}
