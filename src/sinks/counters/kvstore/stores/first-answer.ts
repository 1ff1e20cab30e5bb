import { EMPTY, type Observable, catchError, concatMap, defer, from, map, take, throwIfEmpty } from 'rxjs';
import { messageOf } from '../../../../text/thrown';
import { type Server, nameOf } from '../../server-address';

/** Asks servers one after the other. Emits the first answer, with its server, and completes; fails with the reason of each server. */
export function firstAnswer<T>(
  servers: readonly Server[],
  ask: (server: Server) => Observable<T>,
  problem: string,
): Observable<{ readonly server: Server; readonly answer: T }> {
  return defer(() => {
    const failures: string[] = [];
    return from(servers).pipe(
      concatMap((server) =>
        ask(server).pipe(
          map((answer) => ({ server, answer })),
          catchError((error: unknown) => {
            failures.push(`${nameOf(server)}: ${messageOf(error)}`);
            return EMPTY;
          }),
        ),
      ),
      take(1),
      throwIfEmpty(() => new Error(`${problem} (${failures.join('; ')})`)),
    );
  });
}
