import { type Observable, merge, tap } from 'rxjs';
import type { Readiness } from '../streams/readiness';
import type { App } from './app';

/** What a process does, once its parts are there. */
export interface RunningProcess {
  readonly readiness: Readiness;
  /** The streams of the process. None fails. */
  readonly flows: readonly Observable<unknown>[];
  /**
   * Opens the listeners for decisions when the process is ready, and drains it when it has to end. Resolves to the exit
   * code.
   */
  readonly live: () => Promise<0 | 1>;
}

/**
 * Subscribes to the streams of a process while it lives. Until then, a second signal ends it, should the address of a
 * listener not be found.
 *
 * @returns the exit code, when the process may end
 * @throws what prevents it from running
 */
export async function runProcess(app: App, { readiness, flows, live }: RunningProcess): Promise<0 | 1> {
  const watch$ = readiness.opened$.pipe(tap(app.watchLoop));
  const flow = merge(...flows, watch$).subscribe();
  try {
    return await live();
  } finally {
    flow.unsubscribe();
  }
}
