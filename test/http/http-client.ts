import { type Socket, connect } from 'node:net';
import { type HttpOptions, serveHttp } from '../../src/http/serve-http';
import type { Listening } from '../../src/http/server/serve';
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

/** A `Decide` that answers at once. */
export function always(verdict: Verdict): Decide {
  return (_request, asker) => {
    asker.verdict(verdict);
    return { cancel: () => {} };
  };
}

/** A log that keeps its lines as `level message`. */
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
    warn: write('warn'),
    error: write('error'),
  };
}

const opened: (() => unknown)[] = [];

/** Ends everything that the tests opened here; for `afterEach`. */
export async function closeAll(): Promise<void> {
  await Promise.all(opened.splice(0).map((close) => close()));
}

export interface OpenDoor extends Listening {
  readonly url: string;
  readonly port: number;
}

export async function openDoor(options: Partial<HttpOptions> = {}): Promise<OpenDoor> {
  const door = await serveHttp({
    host: '127.0.0.1',
    port: 0,
    decide: always(OK),
    health: () => ({ healthy: true, unhealthy: [] }),
    onMalformed: () => undefined,
    log: recordingLog(),
    ...options,
    timeouts: { grace: 200, ...options.timeouts },
  });
  opened.push(() => door.close());
  return { ...door, port: door.address.port, url: `http://127.0.0.1:${door.address.port}` };
}

export const ASK = '{"domain":"d","descriptors":[{"entries":[{"key":"a","value":"b"}]}]}';

export function post(door: OpenDoor, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) {
  return fetch(`${door.url}/json`, { method: 'POST', body, headers });
}

/** A connection by hand. */
export interface Wire {
  readonly socket: Socket;
  send(text: string): void;
  /** Resolves with all that came once it matches, or once the connection has ended. */
  until(pattern: RegExp): Promise<string>;
  /** What broke the connection, if anything did. */
  readonly errors: readonly Error[];
  /** Resolves with all that came when the connection has ended. */
  readonly ended: Promise<string>;
}

export function wire(port: number): Wire {
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
      function look() {
        if (!pattern.test(received)) return;
        socket.off('data', look);
        resolve(received);
      }
      socket.on('data', look);
      look();
      void ended.then(resolve);
    });
  }
  return { socket, errors, send: (text) => void socket.write(text), until, ended };
}
