import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { type Socket, connect } from 'node:net';
import { ErrorCode } from '../../src/grpc/http2/frames/protocol';
import { GrpcStatus } from '../../src/grpc/method';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { RateLimitResponse, RateLimitResponse_Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { goawaysOf, hello } from '../grpc/http2/frames';
import { RawClient } from '../grpc/http2/raw-client';
import type { Answers, Target } from './attack';

/** A gRPC client that sends any message and records the answer to each. */
export class GrpcPeer implements Disposable {
  readonly #session: ClientHttp2Session;
  readonly #answers: Answers;

  constructor({ ports }: Target, answers: Answers) {
    this.#session = connectHttp2(`http://127.0.0.1:${ports.grpc}`);
    this.#session.on('error', () => undefined);
    this.#answers = answers;
  }

  /** Makes a call, and records its answer. */
  async call(message: Buffer, { isCompressed = false } = {}): Promise<void> {
    if (this.#session.closed) {
      this.#answers.add('closed');
      return;
    }
    const { stream, answer } = this.#open(isCompressed);
    stream.end(Buffer.concat([prefix(message.length, isCompressed), message]));
    await once(stream, 'close');
    this.#answers.add(answer() ?? 'closed');
  }

  /**
   * Makes a call whose message lacks its last byte, and waits until the service has taken the others or has answered.
   *
   * @returns records the answer
   */
  async callUnfinished(message: Buffer): Promise<() => void> {
    const { stream, answer } = this.#open();
    const written = new Promise((resolve) =>
      stream.write(prefix(message.length + 1), () => stream.write(message, resolve)),
    );
    await Promise.race([written, once(stream, 'close')]);
    return () => this.#answers.add(answer() ?? (stream.closed ? 'closed' : 'open'));
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
  }

  #open(isCompressed = false) {
    const stream = this.#session.request({ ...HEADERS, ...(isCompressed ? { 'grpc-encoding': 'gzip' } : {}) });
    const parts: Buffer[] = [];
    let status: unknown;
    stream.on('response', (headers) => (status = headers['grpc-status']));
    stream.on('trailers', (trailers) => (status = trailers['grpc-status']));
    stream.on('data', (part: Buffer) => parts.push(part)).on('error', () => undefined);
    return { stream, answer: () => (status === undefined ? undefined : answerOf(Number(status), parts)) };
  }
}

const HEADERS = {
  ':method': 'POST',
  ':path': SHOULD_RATE_LIMIT,
  'content-type': 'application/grpc',
  te: 'trailers',
};
const STATUS_NAMES = new Map<number, string>(Object.entries(GrpcStatus).map(([name, number]) => [number, name]));

/** The name of a gRPC status. */
export function statusName(status: number): string {
  return STATUS_NAMES.get(status) ?? String(status);
}

function answerOf(status: number, parts: readonly Buffer[]): string {
  if (status !== GrpcStatus.OK) return statusName(status);
  const { overallCode } = RateLimitResponse.decode(Buffer.concat(parts).subarray(5));
  return RateLimitResponse_Code[overallCode] ?? String(overallCode);
}

/** The five bytes before a gRPC message. */
export function prefix(length: number, isCompressed = false): Buffer {
  const bytes = Buffer.alloc(5);
  bytes[0] = isCompressed ? 1 : 0;
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

/** Opens an HTTP/2 connection for any frames. The preface and SETTINGS are sent. */
export async function rawPeer({ ports }: Target): Promise<RawClient> {
  const socket = connect(ports.grpc, '127.0.0.1');
  const peer = new RawClient(socket);
  await once(socket, 'connect');
  return peer.send(hello());
}

/** Waits until the service has ended the connection, records its GOAWAY, and closes it. */
export async function recordGoaway(peer: RawClient, answers: Answers): Promise<void> {
  await peer.until('the service to end the connection', () => peer.isEnded);
  for (const { code } of goawaysOf(peer.frames)) answers.add(`GOAWAY ${ERROR_NAMES.get(code)}`);
  if (goawaysOf(peer.frames).length === 0) answers.add('closed');
  peer.close();
}

const ERROR_NAMES = new Map<number, string>(Object.entries(ErrorCode).map(([name, number]) => [number, name]));

/** An HTTP/1.1 connection on which any bytes are sent. */
export class HttpPeer implements Disposable {
  readonly socket: Socket;
  /** The status of the first response, `closed`, or `open` while neither has happened. */
  answer = 'open';
  readonly #answered: Promise<void>;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1').on('error', () => undefined);
    let text = '';
    this.#answered = new Promise((resolve) => {
      this.socket.on('data', (chunk: Buffer) => {
        if (this.answer === 'open') text += chunk.toString('latin1');
        const [, status] = /^HTTP\/1\.1 (\d{3})/.exec(text) ?? [];
        if (status === undefined) return;
        this.answer = status;
        resolve();
      });
      this.socket.once('close', () => {
        if (this.answer === 'open') this.answer = 'closed';
        resolve();
      });
    });
  }

  /** Sends bytes, and waits until they are in the hands of the system, or the connection has an answer. */
  async send(bytes: Buffer | string): Promise<void> {
    const sent = new Promise<void>((resolve) => this.socket.write(bytes, () => resolve()));
    await Promise.race([sent, this.#answered]);
  }

  /** Waits for the answer. */
  answered(): Promise<void> {
    return this.#answered;
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

/** Runs `work` for each number below `count`, at most `width` at a time. */
export async function concurrently(
  count: number,
  width: number,
  work: (at: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  async function worker(): Promise<void> {
    while (next < count) {
      next += 1;
      await work(next - 1);
    }
  }
  await Promise.all(Array.from({ length: width }, worker));
}
