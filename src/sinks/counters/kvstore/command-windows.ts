import { EMPTY, type Observable, Subject, asapScheduler, catchError, defer, ignoreElements, mergeMap, tap } from 'rxjs';
import { DecisionError, poolEmpty } from '../../../counting/decision-error';
import { pipelineWindow } from '../../../streams/pipeline-window';
import type { LanePipeline } from '../../../streams/ports/counters';
import type { Connection } from './connection';
import type { Instance } from './instance';
import type { Pool } from './pool';
import { isReply } from './store-error';

/** A call with commands of its own, while it waits for a connection or for replies. */
interface Call {
  /**
   * Resolves when the call has its result or its error; with an error that concerns the connection, and so all its
   * calls.
   */
  readonly begin: (connection: Connection) => Promise<Error | undefined>;
  readonly fail: (error: Error) => void;
}

/**
 * The commands of reservations and of operators, as windows of the pool of a server: those that wait for a connection
 * share one. As many windows are in flight as of a lane, and what happens to others is as there:
 * KVSTORE_POOL_ON_EMPTY_BEHAVIOR. So both together use at most twice the size of the pool, and what CREATE adds.
 */
export class CommandWindows {
  readonly #calls$ = new Subject<Call>();

  constructor(pool: Pool, { windowsInFlight, whenFull }: LanePipeline, instance: Instance) {
    function send(calls: readonly Call[]): Observable<never> {
      return instance
        .inTime((deadline) =>
          pool.use(deadline, async (connection) => {
            const begun = connection.inOneWrite(() => calls.map((call) => call.begin(connection)));
            const lost = (await Promise.all(begun)).find((error) => error !== undefined);
            if (lost !== undefined) throw lost;
          }),
        )
        .pipe(
          // Of a call that has its result, nothing changes.
          catchError((error: Error) => failAll(calls, error)),
          ignoreElements(),
        );
    }
    const windows$ = this.#calls$.pipe(
      pipelineWindow({ span: 0, scheduler: asapScheduler, windowsInFlight, overflowAfter: whenFull?.after }),
      mergeMap((window) => {
        const isRefused = window.isOverflow && whenFull?.behavior === 'fail';
        const sent$ = isRefused ? failAll(window.values, poolEmpty()) : send(window.values);
        return sent$.pipe(tap({ complete: () => window.end() }));
      }),
    );
    // oxlint-disable-next-line house-style/kept-subscriptions -- it emits nothing, and is gone with the pool
    windows$.subscribe();
  }

  /**
   * Resolves or rejects as the commands do; rejects with a DecisionError when there is no connection for them, or it is
   * lost.
   */
  run<T>(commands: (connection: Connection) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      async function begin(connection: Connection): Promise<Error | undefined> {
        try {
          resolve(await commands(connection));
        } catch (error) {
          if (!(error instanceof DecisionError) && !isReply(error)) return error as Error;
          reject(error);
        }
        return undefined;
      }
      this.#calls$.next({ begin, fail: reject });
    });
  }
}

function failAll(calls: readonly Call[], error: Error): Observable<never> {
  return defer(() => {
    for (const { fail } of calls) fail(error);
    return EMPTY;
  });
}
