import { type Observable, asyncScheduler } from 'rxjs';
import type { Rejection } from '../grpc/http2/limits';
import type { HttpRejection, OnHttpRejected } from '../http/limits';
import { type ConditionEvent, PassingConditions } from '../log/condition-log';
import type { Log } from '../log/log';
import { openFilesLimit } from '../net/open-files';
import type { Settings } from '../settings/settings';
import type { Statistics } from '../statistics/statistics';
import { nameOfPeer } from '../text/host-port';

type Lines = Pick<ConditionEvent, 'begins' | 'ends'>;

/** Kinds of rejections by HTTP listeners that can last. The others are logged at level debug only. */
const HTTP_LINES: Partial<Record<HttpRejection, Lines>> = {
  connections: {
    begins: 'an HTTP listener has too many connections; it closes idle ones for new ones, or else the new ones',
    ends: 'an HTTP listener no longer closes connections for new ones',
  },
  hand_over: {
    begins: 'HTTP connections are closed: more arrive than the workers can be given, and too many wait',
    ends: 'HTTP connections are no longer closed because of those that wait for a worker',
  },
  request_memory: {
    begins: 'unfinished bodies of HTTP requests use all of the memory for them; the largest and oldest are rejected',
    ends: 'unfinished bodies of HTTP requests are no longer rejected',
  },
  slow_reader: {
    begins: 'callers do not read their HTTP responses; their connections are closed',
    ends: 'callers read their HTTP responses again',
  },
};

const ACCEPTED = 'gRPC connections are accepted again';

/** Kinds of rejections by the gRPC listener that can last. */
const GRPC_LINES: Partial<Record<GrpcRejection['kind'], Lines & { readonly bound: string }>> = {
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
    begins:
      'gRPC connections are refused: more arrive than the workers can be given, and ' +
      'GRPC_MAX_CONNECTIONS wait or are open',
    ends: ACCEPTED,
    bound: 'hand-over',
  },
};

export interface RejectionParts {
  readonly settings: Pick<Settings, 'grpcMaxConnections'>;
  readonly statistics: Statistics;
  readonly log: Log;
}

/** A connection or stream of gRPC that is rejected. */
export interface GrpcRejection {
  readonly kind: Rejection;
  readonly reason: string;
  readonly peer: Parameters<typeof nameOfPeer>[0];
  /** The connections that are open. */
  readonly open: number;
}

/**
 * Counts and logs what the listeners reject: a line when a condition begins and when it ends, not one for each
 * rejection.
 */
export class Rejections {
  readonly #parts: RejectionParts;
  readonly #conditions = new PassingConditions();
  readonly #filesLimit = openFilesLimit();

  constructor(parts: RejectionParts) {
    this.#parts = parts;
  }

  /** @param listener its name in log lines */
  http(listener: string): OnHttpRejected {
    const { statistics, log } = this.#parts;
    return (kind, caller, reason) => {
      statistics.counter(`ratelimit_server.http.${kind}`).add(1);
      if (log.isDebug) {
        log.debug('HTTP connection or request rejected', { listener, kind, reason, peer: nameOfPeer(caller) });
      }
      const lines = HTTP_LINES[kind];
      if (lines === undefined) return;
      this.#conditions.occurred({
        condition: `${listener} ${kind}`,
        ...lines,
        beginFields: { listener, reason },
        endFields: (count) => ({ listener, rejected: count }),
      });
    };
  }

  grpc({ kind, reason, peer, open }: GrpcRejection): void {
    const { settings, statistics, log } = this.#parts;
    statistics.counter(`ratelimit_server.http2.${kind}`).add(1);
    if (log.isDebug) log.debug('gRPC connection or stream rejected', { kind, reason, peer: nameOfPeer(peer) });
    const lines = GRPC_LINES[kind];
    if (lines === undefined) return;
    const { begins, ends, bound } = lines;
    this.#conditions.occurred({
      condition: bound,
      ...{ begins, ends },
      beginFields: { open, limit: kind === 'file_descriptors' ? this.#filesLimit : settings.grpcMaxConnections },
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

  /** Logs the conditions. Never completes. */
  logConditions(scheduler = asyncScheduler): Observable<unknown> {
    return this.#conditions.logTo(this.#parts.log, scheduler);
  }
}
