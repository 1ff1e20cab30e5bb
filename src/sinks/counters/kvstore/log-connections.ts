import { filter } from 'rxjs';
import type { Log, LogFields } from '../../../streams/log';
import type { Pool } from './pool';
import { StateLog } from './state-log';

/** One line when the last connection of a pool is lost or the first cannot be made, and one when there is one again. */
export function logConnections(pool: Pool, log: Log, fields: LogFields): void {
  const state = new StateLog(
    log,
    { bad: 'the counter store cannot be reached; trying until it can', good: 'connected to the counter store' },
    fields,
  );
  pool.failures$.subscribe((error) => {
    if (!pool.connected$.value) state.bad(error.message);
  });
  pool.connected$.pipe(filter((isConnected) => isConnected)).subscribe(() => state.good());
}
