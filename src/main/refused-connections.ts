import { type Observable, Subject, asyncScheduler, groupBy, mergeMap, tap } from 'rxjs';
import { openFilesLimit } from '../net/open-files';
import type { Settings } from '../settings/settings';
import type { Log } from '../streams/ports/log';
import { refusalPhases } from '../streams/refusals';

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
  readonly #refused = new Subject<Refusal>();
  readonly #filesLimit = openFilesLimit();

  refused(refusal: Refusal): void {
    this.#refused.next(refusal);
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
    return this.#refused.pipe(
      groupBy(({ listener, bound }) => `${listener} ${bound}`),
      mergeMap((refused$) => refusalPhases(refused$, scheduler)),
      tap((phase) => {
        const { listener, bound, open, limit, setting } = phase.first;
        if (phase.kind === 'ended')
          log.warn(`${listener} connections are accepted again`, { refused: phase.count, bound });
        else if (bound === 'connections') {
          log.warn(`${listener} connections are refused: ${setting} are open`, { open, limit });
        } else
          log.warn(`${listener} connections are refused: the limit of open files (ulimit -n) is almost reached`, {
            open,
            limit,
          });
      }),
    );
  }
}
