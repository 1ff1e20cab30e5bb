import type { Log } from '../../../streams/log';
import type { Backoff } from './backoff';
import type { Credentials } from './credentials';
import type { Expiry } from './expiry';
import type { InstanceOptions } from './options';
import type { PoolStatistics } from './pool-statistics';
import type { StateLog } from './state-log';
import type { TlsMaterial } from './tls-material';

/** What the stores of every kind are made with. */
export interface StoreContext {
  readonly instance: InstanceOptions;
  readonly credentials: Credentials | undefined;
  readonly db: number;
  readonly tls: TlsMaterial | undefined;
  readonly expiry: Expiry;
  readonly closeConnectionOnReadonlyError: boolean;
  readonly windowsInFlight: number;
  readonly statistics: PoolStatistics;
  /** For connections: the waits of start-up until there has been one, then those of every day. */
  readonly backoff: Backoff;
  readonly log: Log;
  /** Told of servers that take everybody, although credentials were given. */
  readonly needlessPassword: StateLog;
  /** `main` or `per second`, for log lines. */
  readonly name: string;
}
