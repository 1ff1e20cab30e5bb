import { Subject, asapScheduler } from 'rxjs';
import { DecisionError, poolEmpty } from '../../../counting/decision-error';
import { pipelineWindow } from '../../../streams/pipeline-window';
import type { LanePipeline } from '../../../streams/ports/counters';
import type { Connection } from './connection';
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

  constructor(pool: Pool, { windowsInFlight, whenFull }: LanePipeline) {
    const isBounded = whenFull?.behavior === 'fail';
    // oxlint-disable-next-line house-style/kept-subscriptions -- it emits nothing, and is gone with the pool
    this.#calls$
      .pipe(pipelineWindow({ span: 0, scheduler: asapScheduler, windowsInFlight, overflowAfter: whenFull?.after }))
      .subscribe((window) => {
        const sent = window.isOverflow && isBounded ? Promise.reject(poolEmpty()) : sendOn(pool, window.values);
        // A call that has its result keeps it.
        void sent.catch((error: Error) => window.values.forEach(({ fail }) => fail(error))).finally(() => window.end());
      });
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

/** Sends calls on one connection, in one write. */
function sendOn(pool: Pool, calls: readonly Call[]): Promise<void> {
  return pool.run(async (connection) => {
    const begun = connection.inOneWrite(() => calls.map((call) => call.begin(connection)));
    const lost = (await Promise.all(begun)).find((error) => error !== undefined);
    if (lost !== undefined) throw lost;
  });
}
