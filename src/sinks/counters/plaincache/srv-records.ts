import { Resolver } from 'node:dns/promises';
import {
  EMPTY,
  type Observable,
  type ObservableInput,
  type SchedulerLike,
  defer,
  distinctUntilChanged,
  map,
  repeat,
  retry,
  tap,
  timer,
} from 'rxjs';
import { ConditionLog } from '../../../log/condition-log';
import type { Log } from '../../../log/log';
import { parseServerAddress } from '../../../text/host-port';
import { messageOf } from '../../../text/thrown';

/** How soon a look-up that failed is repeated, in milliseconds. */
const RETRY_INTERVAL = 1000;
/** The time for one look-up; by default, Node waits 27 seconds for a name server that is mute. */
const RESOLVER = { timeout: 1000, tries: 2 };

export interface SrvRecord {
  readonly name: string;
  readonly port: number;
}

export interface SrvOptions {
  /** The record: PLAINCACHE_SRV. */
  readonly record: string;
  /** Milliseconds between look-ups; 0: only one. PLAINCACHE_SRV_REFRESH */
  readonly refresh: number;
  readonly log: Log;
  readonly scheduler: SchedulerLike;
  readonly lookUp: (record: string) => ObservableInput<readonly SrvRecord[]>;
}

/** Looks up an SRV record with the name servers of the system. */
export function lookUpSrv(record: string): Promise<readonly SrvRecord[]> {
  return new Resolver(RESOLVER).resolveSrv(record);
}

/**
 * The servers of an SRV record as `host:port`, sorted as the Go service sorts them: first when they are known, then
 * when they have changed. A look-up that fails is repeated; until one succeeds, the last list stays. Never fails.
 */
export function srvServers({ record, refresh, log, scheduler, lookUp }: SrvOptions): Observable<readonly string[]> {
  const failing = new ConditionLog(log, {
    begins: 'cannot look up the memcached servers; keeping those that are known',
    ends: 'the memcached servers can be looked up again',
    fields: { record },
  });
  return defer(() => lookUp(record)).pipe(
    map(sortedServers),
    tap(() => failing.ended()),
    retry({
      delay: (error: unknown) => {
        failing.because(messageOf(error));
        return timer(RETRY_INTERVAL, scheduler);
      },
    }),
    repeat({ delay: () => (refresh === 0 ? EMPTY : timer(refresh, scheduler)) }),
    distinctUntilChanged((one, other) => one.join() === other.join()),
  );
}

/** @throws Error when there are none */
function sortedServers(records: readonly SrvRecord[]): readonly string[] {
  // The Go service sorts the names with the dot that ends them in DNS; the order decides which node holds a key.
  const sorted = records.map(({ name, port }) => ({ name: name.replace(/\.$/, ''), port })).filter(isAddress);
  if (sorted.length === 0) throw new Error('the record lists no servers');
  sorted.sort((one, other) => compare(`${one.name}.:${one.port}`, `${other.name}.:${other.port}`));
  return sorted.map(({ name, port }) => `${name}:${port}`);
}

/** Whether it can be connected to. The target `.` and the port 0 mean that the service is not available (RFC 2782). */
function isAddress({ name, port }: SrvRecord): boolean {
  return parseServerAddress(`${name}:${port}`) !== undefined;
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
