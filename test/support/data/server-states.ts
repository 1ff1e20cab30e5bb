import { turnScheduler } from '../../../src/main/turn-scheduler';
import { Statistics } from '../../../src/statistics/statistics';
import { ServerStates, type ServerStatesOptions } from '../../../src/streams/server-views';
import { RecordedLog } from './recorded-log';

/** The servers of a store, which are held back after five failed requests. */
export function serverStates(more: Partial<ServerStatesOptions> = {}): ServerStates {
  const [statistics, log] = [new Statistics(100), new RecordedLog()];
  return new ServerStates({ scheduler: turnScheduler, failures: 5, statistics, log, ...more });
}
