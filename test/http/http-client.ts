import { type Socket, connect } from 'node:net';
import { type HttpServerOptions, serveHttp } from '../../src/http/serve-http';
import type { ListeningHttpServer } from '../../src/http/server/http-server';
import { Code, type Verdict } from '../../src/limiter/verdict';
import type { Decide } from '../../src/streams/ports/decide';
import type { Log } from '../../src/streams/ports/log';

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

/** A log that records its lines as `level message`. */
export function recordingLog(): Log & { readonly lines: string[] } {
  const lines: string[] = [];
  function write(level: string) {
    return (message: string) => void lines.push(`${level} ${message}`);
  }
  return {
    lines,
    isDebug: true,
    debug: write('debug'),
    info: write('info'),
    notice: write('notice'),
    warn: write('warn'),
    error: write('error'),
  };
}

const opened: (() => unknown)[] = [];

/** Closes everything that was opened here; for `afterEach`. */
export async function closeAll(): Promise<void> {
  await Promise.all(opened.splice(0).map((close) => close()));
}

export interface TestHttpServer extends ListeningHttpServer {
  readonly url: string;
  readonly port: number;
}

export async function startServer(options: Partial<HttpServerOptions> = {}): Promise<TestHttpServer> {
  const server = await serveHttp({
    host: '127.0.0.1',
    port: 0,
    decide: always(OK),
    health: () => ({ healthy: true, unhealthy: [] }),
    checks: () => [],
    onMalformed: () => undefined,
    onRejected: () => undefined,
    log: recordingLog(),
    ...options,
    timeouts: { grace: 200, ...options.timeouts },
  });
  opened.push(() => server.close());
  return { ...server, port: server.address.port, url: `http://127.0.0.1:${server.address.port}` };
}

/** The body of a request with one descriptor. */
export const REQUEST = '{"domain":"d","descriptors":[{"entries":[{"key":"a","value":"b"}]}]}';

export function post(
  server: TestHttpServer,
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

export function rawConnection(port: number): RawConnection {
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
  return { socket, errors, send: (text) => void socket.write(text), received: () => received, until, ended };
}
