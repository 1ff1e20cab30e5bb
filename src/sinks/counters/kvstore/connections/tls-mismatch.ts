import { connect } from 'node:net';
import {
  EMPTY,
  type Observable,
  catchError,
  connect as shareIn,
  defer,
  from,
  merge,
  mergeMap,
  takeUntil,
  tap,
  throwError,
  timer,
} from 'rxjs';
import { speaksTls } from '../../../../net/speaks-tls';
import { type Server, connectOptions } from '../../server-address';

/** Milliseconds before a TLS handshake is considered to be without answer, where the timeout is not short. */
const PATIENCE = 500;
/** Milliseconds that a server has to answer a probe, before it counts as one that does not. */
const PROBE_TIMEOUT = 300;

export interface ConnectionAttempt {
  readonly server: Server;
  readonly usesTls: boolean;
  /** Milliseconds after which it fails; 0: no limit. */
  readonly timeout: number;
}

const NOT_TLS = 'the server does not speak TLS, but is configured with TLS';
const ONLY_TLS = 'the server speaks only TLS, but is configured without TLS';

/** What is read from a server without TLS. */
const PLAIN_REPLY = /wrong version number|packet length too long/;
/** A server that speaks only TLS sends nothing, or an alert, whose first byte is 0x15. */
const CLOSED = /closed the connection|ECONNRESET|EPIPE|got "\\u0015"/;

/**
 * Makes a connection fail with the reason, and soon, when only one side uses TLS: a server without TLS takes a handshake for the
 * beginning of a command and waits for the rest, and a server with TLS closes the connection. A second connection finds out.
 */
export function explainTlsMismatch<T>(connection$: Observable<T>, attempt: ConnectionAttempt): Observable<T> {
  return attempt.usesTls ? requireTls(connection$, attempt) : requirePlain(connection$, attempt);
}

function requireTls<T>(connection$: Observable<T>, { server, timeout }: ConnectionAttempt): Observable<T> {
  const patience = timeout === 0 ? PATIENCE : Math.min(PATIENCE, timeout / 2);
  const mismatch$ = defer(() => speaksRedis(server)).pipe(mergeMap((isPlain) => (isPlain ? failed(NOT_TLS) : EMPTY)));
  return connection$.pipe(
    shareIn((opened$) =>
      merge(
        opened$,
        timer(patience).pipe(
          takeUntil(opened$),
          mergeMap(() => mismatch$),
        ),
      ),
    ),
    catchError((error: Error) => (PLAIN_REPLY.test(error.message) ? failed(NOT_TLS, error) : throwError(() => error))),
  );
}

function requirePlain<T>(connection$: Observable<T>, { server }: ConnectionAttempt): Observable<T> {
  return defer(() => {
    let isOpen = false;
    return connection$.pipe(
      tap(() => {
        isOpen = true;
      }),
      catchError((error: Error) => {
        if (isOpen || !CLOSED.test(error.message)) return throwError(() => error);
        return from(speaksTls(connectOptions(server), PROBE_TIMEOUT)).pipe(
          mergeMap((isTls) => (isTls ? failed(ONLY_TLS, error) : throwError(() => error))),
        );
      }),
    );
  });
}

function failed(message: string, cause?: Error): Observable<never> {
  return throwError(() => new Error(message, { cause }));
}

/** Whether a server answers a command that is sent without TLS. */
function speaksRedis(server: Server): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(connectOptions(server), () => socket.write('PING\r\n'));
    const timeout = setTimeout(() => end(false), PROBE_TIMEOUT);
    function end(isAnswered: boolean): void {
      clearTimeout(timeout);
      socket.destroy();
      resolve(isAnswered);
    }
    socket.once('data', (bytes) => end(/^[+-]/.test(bytes.toString('latin1'))));
    socket.on('error', () => end(false));
    socket.once('close', () => end(false));
  });
}
