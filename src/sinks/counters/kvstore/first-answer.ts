import { EMPTY, Observable, catchError, concatMap, defer, from, map, merge, switchMap, take, throwIfEmpty } from 'rxjs';
import { messageOf } from '../../../text/thrown';
import { type Server, nameOf } from '../server-address';
import { type Connection, noReply } from './connection';
import { Deadline } from './deadline';

/** Time limit for one server, in milliseconds: one that hangs must not delay the query of the next. */
const QUERY_TIMEOUT = 1000;

export interface Question<T> {
  readonly connect: (server: Server, timeout: number) => Observable<Connection>;
  readonly ask: (connection: Connection, server: Server) => Promise<T>;
  /** KVSTORE_TIMEOUT in milliseconds, 0: no limit. */
  readonly timeout: number;
  /** The beginning of the error when no server answers. */
  readonly problem: string;
}

/**
 * Asks servers one after the other, each on a connection of its own. Emits the first answer, with its server, and completes; fails with
 * the reason of each server.
 */
export function firstAnswer<T>(
  servers: readonly Server[],
  { connect, ask, timeout, problem }: Question<T>,
): Observable<{ readonly server: Server; readonly answer: T }> {
  const limit = queryTimeout(timeout);
  return defer(() => {
    const failures: string[] = [];
    return from(servers).pipe(
      concatMap((server) => {
        const answer$ = connect(server, limit).pipe(switchMap((connection) => ask(connection, server)));
        return merge(answer$, failAfter(limit)).pipe(
          take(1),
          map((answer) => ({ server, answer })),
          catchError((error: unknown) => {
            failures.push(`${nameOf(server)}: ${messageOf(error)}`);
            return EMPTY;
          }),
        );
      }),
      take(1),
      throwIfEmpty(() => new Error(`${problem} (${failures.join('; ')})`)),
    );
  });
}

/** @param timeout KVSTORE_TIMEOUT in milliseconds, 0: no limit */
export function queryTimeout(timeout: number): number {
  return timeout > 0 ? Math.min(timeout, QUERY_TIMEOUT) : QUERY_TIMEOUT;
}

function failAfter(milliseconds: number): Observable<never> {
  return new Observable((subscriber) => {
    const deadline = new Deadline(milliseconds);
    deadline.watch(() => subscriber.error(noReply(milliseconds)));
    return () => deadline.end();
  });
}
