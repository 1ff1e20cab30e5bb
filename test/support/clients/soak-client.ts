import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import { ErrorCode, Flag, FrameType } from '../../../src/grpc/http2/frames/protocol';
import {
  type Frame,
  block,
  data,
  fieldsOf,
  headers,
  hello,
  parseFrames,
  rstStream,
  windowUpdate,
} from '../../grpc/http2/frames';
import net from 'node:net';
import { requestMessage } from './grpc-client';
import { prefixed } from './http2-connection';

const INITIAL_WINDOW = 65_535;
/** The connection window of weir. */
export const CONNECTION_WINDOW = 1_048_576;
export const MAX_FRAME_BYTES = 16_384;
/** Received bytes after which the client returns its window. */
const GRANT_BYTES = 16_384;
const OUTSTANDING = 32;
/** Calls after which a connection is dropped at the earliest and at the latest. */
const CALLS_UNTIL_DROP = { least: 100, most: 2_000 } as const;
const KEYS = 100;
const DEADLINES = ['1n', '300u', '2m', '10S'] as const;
const CANCELLATIONS = ['with the request', 'incomplete', 'in flight', 'afterwards'] as const;
const OK = '0';
const DEADLINE_EXCEEDED = '4';

/** What has become of the calls of all clients. */
export interface Outcomes {
  sent: number;
  /** Answered with OK, also those that were then reset. */
  answered: number;
  /** Reset before an answer. */
  cancelled: number;
  /** Answered with DEADLINE_EXCEEDED. */
  expired: number;
  /** In flight when their connection was dropped. */
  dropped: number;
  connectionsDropped: number;
}

export const NO_OUTCOMES: Outcomes = {
  sent: 0,
  answered: 0,
  cancelled: 0,
  expired: 0,
  dropped: 0,
  connectionsDropped: 0,
};

interface SoakOptions {
  readonly port: number;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** Shared by all clients. */
  readonly outcomes: Outcomes;
  /** The calls that all clients send together. */
  readonly calls: number;
}

export const SOAK_KEYS: readonly string[] = Array.from({ length: KEYS }, (_, at) => `key-${at}`);
const MESSAGES = SOAK_KEYS.map((key) => prefixed(requestMessage('shop', [`user=${key}`])));

function requestBlock(deadline?: string): Buffer {
  const pseudo = { ':method': 'POST', ':scheme': 'http', ':path': SHOULD_RATE_LIMIT, ':authority': 'weir' };
  const fields = { ...pseudo, 'content-type': 'application/grpc', te: 'trailers' };
  return block(Object.entries({ ...fields, ...(deadline !== undefined && { 'grpc-timeout': deadline }) }));
}
const BLOCK = requestBlock();
const DEADLINE_BLOCKS = DEADLINES.map(requestBlock);
const statuses = new Map<string, string | undefined>();

/** The gRPC status in a header block; undefined if it has none. */
function statusOf(payload: Buffer): string | undefined {
  const key = payload.toString('latin1');
  if (!statuses.has(key)) statuses.set(key, fieldsOf(payload)['grpc-status']);
  return statuses.get(key);
}

/**
 * A client that keeps 32 calls in flight, and cancels a tenth of its calls with RST_STREAM at various moments, gives another
 * tenth a deadline, and drops its connection now and then. It accounts for the flow-control windows in both directions.
 */
export class SoakClient {
  readonly #options: SoakOptions;
  #socket: net.Socket;
  #rest: Buffer = Buffer.alloc(0);
  #next = 1;
  /** The calls in flight: whether the answer is to be followed by a reset. */
  readonly #open = new Map<number, { readonly resetAfterwards: boolean }>();
  /** Frames that follow a call in a later turn. */
  #later: Buffer[] = [];
  /** What may be sent to the server on the connection, and on the stream of {@link upload}. */
  #window = INITIAL_WINDOW;
  #streamWindow = INITIAL_WINDOW;
  #ungranted = 0;
  #uploading = 0;
  #uploadStatus = '';
  #callsUntilDrop: number;
  #onEvent: () => void = () => {};
  #error: Error | undefined;

  constructor(options: SoakOptions) {
    this.#options = options;
    this.#callsUntilDrop = this.#nextDrop();
    this.#socket = this.#connect();
  }

  /** Resolves when all calls have been sent and this client's are over. */
  async run(): Promise<void> {
    this.#pump();
    await this.#until(
      () => this.#options.outcomes.sent >= this.#options.calls && this.#open.size === 0 && this.#later.length === 0,
    );
  }

  /**
   * Sends one long message, two frames at a time. Returns its gRPC status, and the largest connection window after a
   * WINDOW_UPDATE: {@link CONNECTION_WINDOW} if nothing was lost, or one frame less if the first of two frames has caused it.
   */
  async upload(message: Buffer): Promise<{ readonly status: string; readonly window: number }> {
    const id = this.#next;
    this.#next += 2;
    const body = prefixed(message);
    let window = 0;
    this.#uploadStatus = '';
    this.#uploading = id;
    this.#streamWindow = INITIAL_WINDOW;
    this.#socket.write(headers(id, BLOCK));
    for (let at = 0; at < body.length;) {
      const piece = body.subarray(at, at + MAX_FRAME_BYTES);
      at += piece.length;
      await this.#until(() => piece.length <= Math.min(this.#window, this.#streamWindow));
      const before = this.#window;
      this.#send(data(id, piece, at === body.length));
      this.#streamWindow -= piece.length;
      // Two frames are half of the stream's window, so that a WINDOW_UPDATE follows every second one.
      if (at % (2 * MAX_FRAME_BYTES) === 0 && at < body.length)
        await this.#until(() => this.#streamWindow > INITIAL_WINDOW / 2 + MAX_FRAME_BYTES);
      if (this.#window > before) window = Math.max(window, this.#window);
    }
    await this.#until(() => this.#uploadStatus !== '');
    return { status: this.#uploadStatus, window };
  }

  close(): void {
    this.#socket.destroy();
  }

  #connect(): net.Socket {
    const socket = net.connect({ port: this.#options.port, host: '127.0.0.1', noDelay: true });
    socket.write(hello());
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('error', (error) => this.#fail(error));
    socket.on('end', () => this.#fail(new Error('the server has ended the connection')));
    return socket;
  }

  #fail(error: Error): void {
    this.#error = error;
    this.#onEvent();
  }

  #until(holds: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#onEvent = () => {
        if (this.#error !== undefined) reject(this.#error);
        else if (holds()) resolve();
      };
      this.#onEvent();
    });
  }

  /** Counted in calls: one received chunk has the answers of one call or of many, as the machine is idle or busy. */
  #nextDrop(): number {
    const { least, most } = CALLS_UNTIL_DROP;
    return least + Math.floor(this.#options.random() * (most - least));
  }

  #isOnceIn(times: number): boolean {
    return this.#options.random() * times < 1;
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#options.random() * choices.length)]!;
  }

  /** Begins calls until enough are in flight. */
  #pump(): void {
    const { outcomes, calls } = this.#options;
    if (this.#error !== undefined) return;
    while (this.#open.size < OUTSTANDING && outcomes.sent < calls) this.#call();
    if (this.#later.length > 0) setImmediate(() => this.#flushLater(this.#socket));
    this.#onEvent();
  }

  #flushLater(socket: net.Socket): void {
    if (socket !== this.#socket) return;
    for (const bytes of this.#later.splice(0)) this.#send(bytes);
    this.#pump();
  }

  #call(): void {
    const { outcomes } = this.#options;
    const id = this.#next;
    this.#next += 2;
    outcomes.sent += 1;
    this.#callsUntilDrop -= 1;
    const message = this.#pick(MESSAGES);
    const begin = headers(id, this.#isOnceIn(10) ? this.#pick(DEADLINE_BLOCKS) : BLOCK);
    const cancellation = this.#isOnceIn(10) ? this.#pick(CANCELLATIONS) : undefined;
    const cut = 1 + Math.floor(this.#options.random() * (message.length - 1));
    if (cancellation === undefined || cancellation === 'afterwards') {
      this.#open.set(id, { resetAfterwards: cancellation !== undefined });
      if (this.#isOnceIn(5)) {
        this.#send(Buffer.concat([begin, data(id, message.subarray(0, cut))]));
        this.#later.push(data(id, message.subarray(cut), true));
      } else this.#send(Buffer.concat([begin, data(id, message, true)]));
      return;
    }
    outcomes.cancelled += 1;
    const reset = rstStream(id, ErrorCode.CANCEL);
    const isComplete = cancellation !== 'incomplete';
    const call = Buffer.concat([begin, data(id, isComplete ? message : message.subarray(0, cut), isComplete)]);
    this.#send(cancellation === 'with the request' ? Buffer.concat([call, reset]) : call);
    if (cancellation !== 'with the request') this.#later.push(reset);
  }

  #send(bytes: Buffer): void {
    for (const { type, payload } of parseFrames(bytes).frames)
      if (type === FrameType.DATA) this.#window -= payload.length;
    this.#socket.write(bytes);
  }

  #receive(chunk: Buffer): void {
    const { frames, rest } = parseFrames(this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]));
    this.#rest = Buffer.from(rest);
    for (const frame of frames) this.#onFrame(frame);
    if (this.#ungranted >= GRANT_BYTES) {
      this.#socket.write(windowUpdate(0, this.#ungranted));
      this.#ungranted = 0;
    }
    if (this.#callsUntilDrop <= 0 && this.#open.size > 0 && this.#uploading === 0) this.#drop();
    this.#pump();
  }

  #onFrame({ type, flags, stream, payload }: Frame): void {
    if (type === FrameType.DATA) this.#ungranted += payload.length;
    if (type === FrameType.WINDOW_UPDATE && stream === 0) this.#window += payload.readUInt32BE();
    if (type === FrameType.WINDOW_UPDATE && stream === this.#uploading) this.#streamWindow += payload.readUInt32BE();
    if (type === FrameType.GOAWAY) this.#fail(new Error(`GOAWAY: ${payload.toString('latin1', 8)}`));
    if (type === FrameType.RST_STREAM && this.#open.has(stream)) this.#fail(new Error('a call was reset'));
    if (type === FrameType.HEADERS && (flags & Flag.END_STREAM) !== 0) this.#onStatus(stream, statusOf(payload) ?? '');
  }

  #onStatus(stream: number, status: string): void {
    const { outcomes } = this.#options;
    if (stream === this.#uploading) this.#uploadStatus = status;
    const call = this.#open.get(stream);
    // The answer to an upload, or to a call that this client has reset.
    if (call === undefined) return;
    this.#open.delete(stream);
    if (status === OK) outcomes.answered += 1;
    else if (status === DEADLINE_EXCEEDED) outcomes.expired += 1;
    else this.#fail(new Error(`a call ended with status ${status}`));
    if (call.resetAfterwards) this.#socket.write(rstStream(stream, ErrorCode.CANCEL));
  }

  #drop(): void {
    const { outcomes } = this.#options;
    outcomes.dropped += this.#open.size;
    outcomes.connectionsDropped += 1;
    this.#socket.removeAllListeners().on('error', () => undefined);
    this.#socket.destroy();
    this.#open.clear();
    this.#later = [];
    this.#rest = Buffer.alloc(0);
    this.#next = 1;
    this.#window = INITIAL_WINDOW;
    this.#ungranted = 0;
    this.#callsUntilDrop = this.#nextDrop();
    this.#socket = this.#connect();
  }
}
