// A load client on raw sockets: it writes frames and counts the ends of answers, and so is never what a run measures.
import net from 'node:net';
import { PROFILES, SETTINGS_ACK, frame, opening } from './frames.mjs';

const HEADERS = 1;
const SETTINGS = 4;
const GOAWAY = 7;
const RST_STREAM = 3;
const END_STREAM = 1;
const END_HEADERS = 4;

/** One connection that calls and counts. `message(n)`: the n-th request message, without its prefix. */
export class Caller {
  calls = 0;
  answered = 0;
  #rest = Buffer.alloc(0);

  constructor(port, { profile, path, message, onAnswer }) {
    this.#blocks = PROFILES[profile](path);
    this.#message = message;
    this.#onAnswer = onAnswer;
    this.socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.write(opening());
    this.socket.on('data', (chunk) => this.#read(chunk));
    this.socket.on('error', (error) => {
      throw error;
    });
  }

  #blocks;
  #message;
  #onAnswer;

  /** Begins so many calls, in one write. */
  call(count) {
    const frames = [];
    for (let begun = 0; begun < count; begun++) {
      const stream = 2 * this.calls + 1;
      const message = this.#message(this.calls);
      const body = Buffer.alloc(5 + message.length);
      body.writeUInt32BE(message.length, 1);
      message.copy(body, 5);
      frames.push(frame(HEADERS, END_HEADERS, stream, this.#blocks(this.calls)), frame(0, END_STREAM, stream, body));
      this.calls++;
    }
    this.socket.write(Buffer.concat(frames));
  }

  #read(chunk) {
    const octets = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    let ended = 0;
    while (octets.length - at >= 9) {
      const length = octets.readUIntBE(at, 3);
      if (octets.length - at < 9 + length) break;
      const type = octets[at + 3];
      const flags = octets[at + 4];
      if (type === HEADERS && (flags & END_STREAM) !== 0) ended++;
      else if (type === SETTINGS && (flags & 1) === 0) this.socket.write(SETTINGS_ACK);
      else if (type === GOAWAY || type === RST_STREAM) throw new Error(`the server refused: frame type ${type}`);
      at += 9 + length;
    }
    this.#rest = octets.subarray(at);
    this.answered += ended;
    if (ended > 0) this.#onAnswer?.(this, ended);
  }
}
