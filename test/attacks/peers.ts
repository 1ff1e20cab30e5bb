import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { type Socket, connect } from 'node:net';
import { ErrorCode } from '../../src/grpc/http2/protocol';
import { GrpcStatus } from '../../src/grpc/method';
import { RateLimitResponse_Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { goawaysOf, hello } from '../grpc/http2/frames';
import { RawClient } from '../grpc/http2/raw-client';
import { openCall, prefix, prefixed } from '../support/clients/http2-connection';
import type { RuleFolder } from '../support/data/rule-folder';
import type { AdsServerStream } from '../support/servers/ads-server';
import type { WeirProcess } from '../support/processes/weir-process';

/** A running service, as an attacker on the same machine sees it. */
export interface Target {
  readonly weir: WeirProcess;
  readonly ports: WeirProcess['ports'];
  readonly rules: RuleFolder;
  /** With rules from a management server: its side of the stream. */
  readonly ads?: AdsServerStream;
  /** With TLS: the certificate authority to trust. */
  readonly ca?: string;
}

/**
 * What the attacker's peers received: the name of a gRPC status, `OVER_LIMIT`, an HTTP status, `closed` for a
 * connection that the service closed, `GOAWAY` and its error code, or `open` for what was still unfinished at the end.
 */
export type Answers = Set<string>;

/** An attack on a running service. The row of the table in test/README.md is its key in `ATTACKS`. */
export interface Attack {
  /** Settings of the service, in addition to those of every attack. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Rule files in addition to those of the well-behaved client, by name. */
  readonly rules?: Readonly<Record<string, string>>;
  readonly store?: 'memory' | 'redis';
  /** The limit of open files of the service (`ulimit -n`). */
  readonly openFiles?: number;
  /** How many other instances there are, and what each answers, from 1. */
  readonly instances?: { readonly count: number; readonly answerOf: (peer: number) => string };
  /** Whether the rules come from a management server; the attack gets its stream. */
  readonly isXds?: boolean;
  /** Whether the gRPC listener uses TLS, with `tls.crt` and `tls.key` next to the folder of the rule files. */
  readonly isTls?: boolean;
  /** An output of the service that no process reads. */
  readonly unread?: 'stderr' | 'stdout';
  /** Attacks once and records the answers. Everything it opened is closed when it returns. */
  run(target: Target, answers: Answers): Promise<void>;
}

/** A gRPC client that sends any message and records the answer to each. */
export class GrpcPeer implements Disposable {
  readonly #session: ClientHttp2Session;
  readonly #answers: Answers;

  /** @param localAddress of its own end of the connection */
  constructor({ ports }: Target, answers: Answers, localAddress?: string) {
    this.#session = connectHttp2('http://127.0.0.1', {
      createConnection: () => connect({ port: ports.grpc, host: '127.0.0.1', localAddress }),
    }).on('error', () => undefined);
    this.#answers = answers;
  }

  /** Makes a call, and records its answer. @param isGzip whether the message is said to be compressed */
  async call(message: Buffer, isGzip = false): Promise<void> {
    if (this.#session.closed) {
      this.#answers.add('closed');
      return;
    }
    const call = openCall(this.#session, isGzip ? { 'grpc-encoding': 'gzip' } : {});
    call.stream.end(prefixed(message, Number(isGzip)));
    await call.closed;
    this.#answers.add(answerOf(call) ?? 'closed');
  }

  /**
   * Makes a call whose message lacks its last byte, and waits until the service has taken the others or has answered.
   *
   * @returns records the answer
   */
  async callUnfinished(message: Buffer): Promise<() => void> {
    const call = openCall(this.#session);
    const written = new Promise((resolve) =>
      call.stream.write(prefix(message.length + 1), () => call.stream.write(message, resolve)),
    );
    await Promise.race([written, call.closed]);
    return () => this.#answers.add(answerOf(call) ?? (call.stream.closed ? 'closed' : 'open'));
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
  }
}

function answerOf({ status: statusOf, response }: ReturnType<typeof openCall>): string | undefined {
  const status = statusOf();
  if (status === GrpcStatus.OK) return RateLimitResponse_Code[response().overallCode];
  return status === undefined ? undefined : statusName(status);
}

const STATUS_NAMES = new Map<number, string>(Object.entries(GrpcStatus).map(([name, number]) => [number, name]));

/** The name of a gRPC status. */
export function statusName(status: number): string {
  return STATUS_NAMES.get(status) ?? String(status);
}

/** Opens an HTTP/2 connection for any frames. The preface and SETTINGS are sent. */
export async function rawPeer({ ports }: Target): Promise<RawClient> {
  const peer = new RawClient(connect(ports.grpc, '127.0.0.1'));
  await once(peer.socket, 'connect');
  return peer.send(hello());
}

const ERROR_NAMES = new Map<number, string>(Object.entries(ErrorCode).map(([name, number]) => [number, name]));

/** Waits until the service has ended the connection, records its GOAWAY, and closes it. */
export async function recordGoaway(peer: RawClient, answers: Answers): Promise<void> {
  await peer.until('the service to end the connection', () => peer.isEnded);
  for (const { code } of goawaysOf(peer.frames)) answers.add(`GOAWAY ${ERROR_NAMES.get(code)}`);
  if (goawaysOf(peer.frames).length === 0) answers.add('closed');
  peer.close();
}

/** An HTTP/1.1 connection on which any bytes are sent. */
export class HttpPeer implements Disposable {
  readonly socket: Socket;
  /** The status of the first response, `closed`, or `open` while neither has happened. */
  answer = 'open';
  /** Resolves when there is an answer. */
  readonly answered: Promise<void>;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1').on('error', () => undefined);
    let text = '';
    this.answered = new Promise((resolve) => {
      const settle = (answer: string | undefined) => {
        if (this.answer !== 'open' || answer === undefined) return;
        this.answer = answer;
        resolve();
      };
      this.socket.on('data', (chunk: Buffer) => {
        if (this.answer === 'open') text += chunk.toString('latin1');
        settle(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);
      });
      this.socket.once('close', () => settle('closed'));
    });
  }

  /** Sends bytes, and waits until they are in the hands of the system, or the connection has an answer. */
  async send(bytes: Buffer | string): Promise<void> {
    const sent = new Promise<void>((resolve) => this.socket.write(bytes, () => resolve()));
    await Promise.race([sent, this.answered]);
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
