import { type IncomingMessage, get } from 'node:http';
import { type Socket, connect } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type DebugServerOptions, serveDebug } from '../../src/http/debug/serve-debug';
import { type HttpServerOptions, serveHttp } from '../../src/http/serve-http';
import { Authorization } from '../../src/http/operators/authorization';
import type { HttpListener } from '../../src/http/listener';
import type { HttpRejection } from '../../src/http/limits';
import { Code, type Verdict } from '../../src/limiter/verdict';
import type { RateLimitRequest } from '../../src/limiter/request';
import { NO_CONFIG } from '../../src/streams/config';
import type { CancelCause, Decide, DecisionObserver } from '../../src/streams/ports/decide';
import { ReservationError, type Reservations } from '../../src/streams/ports/reservations';
import { RecordedLog } from '../support/data/recorded-log';

export const OK: Verdict = {
  overallCode: Code.OK,
  statuses: [{ code: Code.OK, currentLimit: undefined, limitRemaining: 0, secondsUntilReset: undefined }],
  responseHeaders: [],
  dynamicMetadata: undefined,
};

export const OVER_LIMIT: Verdict = { ...OK, overallCode: Code.OVER_LIMIT };

/** A `Decide` that answers synchronously. */
export function always(verdict: Verdict): Decide {
  return (_request, observer) => {
    observer.verdict(verdict);
    return { cancel: () => {} };
  };
}

/** A `Decide` whose requests stay pending until the test answers their observers. */
export function pendingDecisions() {
  const requested: { request: RateLimitRequest; observer: DecisionObserver }[] = [];
  const cancelled: CancelCause[] = [];
  function decide(request: RateLimitRequest, observer: DecisionObserver) {
    requested.push({ request, observer });
    return { cancel: (cause: CancelCause) => void cancelled.push(cause) };
  }
  return { decide, requested, cancelled };
}

/** Records the kinds of what a server rejects. */
export function rejections() {
  const kinds: HttpRejection[] = [];
  return { kinds, onRejected: (kind: HttpRejection) => void kinds.push(kind) };
}

/** A response that is not read until `rest` is called, which resolves with its number of bytes. */
export async function unreadResponse(url: string): Promise<{ rest: () => Promise<number> }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => get(url, resolve).on('error', reject));
  return {
    rest: async () => {
      let bytes = 0;
      for await (const chunk of response) bytes += (chunk as Buffer).length;
      return bytes;
    },
  };
}

/** Resolves when a count has stayed the same for many turns of the event loop, in which all that can run has run. */
export async function untilStill(count: () => number): Promise<void> {
  for (let before = -1; before !== count();) {
    before = count();
    for (let turn = 0; turn < 1_000; turn += 1) await nextTurn();
  }
}

function rejected(): Promise<never> {
  return Promise.reject(new ReservationError('not_supported', 'no reservations'));
}
const NO_RESERVATIONS: Reservations = { reserve: rejected, settle: rejected, cancel: rejected, complete: rejected };

const opened: (() => unknown)[] = [];

/** Closes everything that was opened here; for `afterEach`. */
export async function closeAll(): Promise<void> {
  await Promise.all(opened.splice(0).map((close) => close()));
}

export type TestHttpServer = HttpListener & { readonly url: string; readonly port: number };

export async function startServer(options: Partial<HttpServerOptions> = {}): Promise<TestHttpServer> {
  const server = await serveHttp({
    host: '127.0.0.1',
    port: 0,
    decide: always(OK),
    reservations: NO_RESERVATIONS,
    readiness: { health: { healthy: true, unhealthy: [] }, checks: [] },
    onMalformed: () => undefined,
    onRejected: () => undefined,
    log: new RecordedLog(),
    ...options,
    timeouts: { grace: 200, ...options.timeouts },
  });
  return opening(server);
}

function opening(server: HttpListener): TestHttpServer {
  opened.push(() => server.close());
  const { port } = server.address;
  return Object.assign(server, { port, url: `http://127.0.0.1:${port}` });
}

/** Starts a debug listener of a service without rules. */
export async function startDebugServer(options: Partial<DebugServerOptions> = {}): Promise<TestHttpServer> {
  const server = await serveDebug({
    host: '127.0.0.1',
    port: 0,
    version: '1.2.3',
    config: () => NO_CONFIG,
    readiness: { health: { healthy: true, unhealthy: [] }, checks: [] },
    statistics: async () => [],
    allowedHosts: [],
    hasConsole: true,
    authorization: new Authorization(() => undefined, new RecordedLog()),
    operatorsApi: (_ctx, next) => next(),
    onRejected: () => undefined,
    log: new RecordedLog(),
    availableMemory: () => Infinity,
    ...options,
  });
  return opening(server);
}

/** The body of a request with one descriptor. */
export const REQUEST = '{"domain":"d","descriptors":[{"entries":[{"key":"a","value":"b"}]}]}';

/** The bytes of that request to `/json`, and of one to `/healthcheck`. */
export const POST_BYTES = `POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: ${REQUEST.length}\r\n\r\n${REQUEST}`;
export const HEALTH_BYTES = 'GET /healthcheck HTTP/1.1\r\nHost: x\r\n\r\n';

export function post(
  server: Pick<TestHttpServer, 'url'>,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
) {
  return fetch(`${server.url}/json`, { method: 'POST', body, headers });
}

/** A TCP connection on which the test writes the bytes of HTTP. */
export interface RawConnection {
  readonly socket: Socket;
  send(text: string): void;
  /** Everything received so far. */
  received(): string;
  /** Resolves with everything received once it matches, or once the connection has closed. */
  until(pattern: RegExp): Promise<string>;
  /** The errors of the connection. */
  readonly errors: readonly Error[];
  /** Resolves with everything received when the connection has closed. */
  readonly ended: Promise<string>;
}

/** The body as JSON of the last response of a closed connection. */
export function jsonIn(response: string): unknown {
  return JSON.parse(response.slice(response.lastIndexOf('\r\n\r\n') + 4));
}

/** Opens a connection, and sends bytes if there are any. */
export function rawConnection(port: number, bytes = ''): RawConnection {
  const socket = connect(port, '127.0.0.1');
  opened.push(() => socket.destroy());
  let received = '';
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  const errors: Error[] = [];
  socket.on('error', (error) => errors.push(error));
  const ended = new Promise<string>((resolve) => {
    socket.once('close', () => resolve(received));
  });
  function until(pattern: RegExp) {
    return new Promise<string>((resolve) => {
      function check() {
        if (!pattern.test(received)) return;
        socket.off('data', check);
        resolve(received);
      }
      socket.on('data', check);
      check();
      void ended.then(resolve);
    });
  }
  if (bytes !== '') socket.write(bytes);
  return { socket, errors, send: (text) => void socket.write(text), received: () => received, until, ended };
}
