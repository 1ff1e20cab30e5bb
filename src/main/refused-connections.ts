import { type Observable, asyncScheduler } from 'rxjs';
import { openFilesLimit } from '../net/open-files';
import type { Settings } from '../settings/settings';
import { PassingConditions } from '../streams/condition-log';
import type { Log } from '../streams/ports/log';

/** Why a listener closes a connection when it accepts it. */
export interface Refusal {
  /** As in the log lines: `gRPC`. */
  readonly listener: string;
  readonly bound: 'connections' | 'open files';
  /** The setting that bounds the connections. */
  readonly setting: string;
  /** The connections that the listener has. */
  readonly open: number;
  /** The connections or open files that are permitted. */
  readonly limit: number;
}

/** Logs that a listener refuses connections: one line when it begins and one when it ends, whatever the number of connections. */
export class RefusedConnections {
  readonly #conditions = new PassingConditions();
  readonly #filesLimit = openFilesLimit();

  refused({ listener, bound, setting, open, limit }: Refusal): void {
    this.#conditions.occurred({
      condition: `${listener} ${bound}`,
      begins:
        bound === 'connections'
          ? `${listener} connections are refused: ${setting} are open`
          : `${listener} connections are refused: the limit of open files (ulimit -n) is almost reached`,
      beginFields: { open, limit },
      ends: `${listener} connections are accepted again`,
      endFields: (count) => ({ refused: count, bound }),
    });
  }

  /** @param open the gRPC connections that are open */
  grpcRefused(bound: 'connections' | 'file_descriptors', open: number, { grpcMaxConnections }: Settings): void {
    const isFull = bound === 'connections';
    this.refused({
      listener: 'gRPC',
      bound: isFull ? 'connections' : 'open files',
      setting: 'GRPC_MAX_CONNECTIONS',
      open,
      limit: isFull ? grpcMaxConnections : this.#filesLimit,
    });
  }

  /** Never completes. */
  logTo(log: Log, scheduler = asyncScheduler): Observable<unknown> {
    return this.#conditions.logTo(log, scheduler);
  }
}
