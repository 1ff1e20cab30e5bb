import { type Observable, asyncScheduler } from 'rxjs';
import { openFilesLimit } from '../net/open-files';
import type { Settings } from '../settings/settings';
import { PassingConditions } from '../log/condition-log';
import type { Log } from '../log/log';

/** Why a gRPC connection is refused, or with `file_descriptors` perhaps another one closed for it. `hand_over`: more arrive than can be given to the workers. */
export type RefusedFor = 'connections' | 'file_descriptors' | 'hand_over';

const ACCEPTED = 'gRPC connections are accepted again';

const LINES: Readonly<Record<RefusedFor, { readonly begins: string; readonly ends: string; readonly bound: string }>> =
  {
    connections: {
      begins: 'gRPC connections are refused: GRPC_MAX_CONNECTIONS are open',
      ends: ACCEPTED,
      bound: 'connections',
    },
    file_descriptors: {
      begins: 'gRPC connections are closed, the idlest first: the limit of open files (ulimit -n) is almost reached',
      ends: 'gRPC connections are no longer closed because of the limit of open files',
      bound: 'open files',
    },
    hand_over: {
      begins: 'gRPC connections are refused: more arrive than the workers can be given',
      ends: ACCEPTED,
      bound: 'hand-over',
    },
  };

/** Logs that a listener refuses connections: one line when it begins and one when it ends, whatever the number of connections. */
export class RefusedConnections {
  readonly #conditions = new PassingConditions();
  readonly #filesLimit = openFilesLimit();

  /** @param open the gRPC connections that are open */
  grpcRefused(why: RefusedFor, open: number, { grpcMaxConnections }: Settings): void {
    const { begins, ends, bound } = LINES[why];
    this.#conditions.occurred({
      condition: bound,
      begins,
      beginFields: { open, limit: why === 'file_descriptors' ? this.#filesLimit : grpcMaxConnections },
      ends,
      endFields: (count) => ({ refused: count, bound }),
    });
  }

  /** A peer has reset its connection before a worker had it. */
  reset(listener: string): void {
    this.#conditions.occurred({
      condition: `${listener} reset`,
      begins: 'connections are reset by their peers before a worker has them',
      beginFields: { listener },
      ends: 'connections are no longer reset before a worker has them',
      endFields: (count) => ({ listener, reset: count }),
    });
  }

  /** Never completes. */
  logTo(log: Log, scheduler = asyncScheduler): Observable<unknown> {
    return this.#conditions.logTo(log, scheduler);
  }
}
