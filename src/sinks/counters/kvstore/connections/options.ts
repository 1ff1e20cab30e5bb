import type { Statistics } from '../../../../statistics/statistics';
import type { Log } from '../../../../streams/ports/log';

/** What to do while every connection of a pool is busy: KVSTORE_POOL_ON_EMPTY_BEHAVIOR. */
export type PoolOnEmpty = 'CREATE' | 'ERROR' | 'WAIT';

/** How one instance of the store is reached; each field is the setting of its name. Times are in milliseconds. */
export interface InstanceOptions {
  readonly type: 'single' | 'sentinel' | 'cluster';
  readonly url: string;
  /** Undefined: follows from the address. Looked at for a single server only. */
  readonly socketType: 'tcp' | 'tcp4' | 'tcp6' | 'unix' | undefined;
  /** `password` or `user:password`; wins over what the address holds. */
  readonly auth: string | undefined;
  readonly sentinelAuth: string | undefined;
  readonly tls: boolean;
  readonly poolSize: number;
  /** 0: no limit. */
  readonly timeout: number;
  readonly poolOnEmptyBehavior: PoolOnEmpty;
  readonly poolOnEmptyWaitDuration: number;
  readonly clusterPipelineParallelism: number;
}

/** The TLS files, which serve both instances. */
export interface StoreTlsFiles {
  readonly caFile: string | undefined;
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly skipHostnameVerification: boolean;
}

/** How the store is waited for at start: KVSTORE_STARTUP_*, in milliseconds. */
export interface StartupOptions {
  readonly initialInterval: number;
  readonly maxInterval: number;
  /** 0: for ever. */
  readonly maxElapsedTime: number;
}

export interface KvstoreOptions {
  readonly main: InstanceOptions;
  /** Where limits per second are counted; undefined unless KVSTORE_PERSECOND. */
  readonly perSecond: InstanceOptions | undefined;
  readonly tlsFiles: StoreTlsFiles;
  readonly startup: StartupOptions;
  /** KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR */
  readonly closeConnectionOnReadonlyError: boolean;
  /** EXPIRATION_JITTER_MAX_SECONDS */
  readonly expirationJitterMaxSeconds: number;
  readonly statistics: Statistics;
  readonly log: Log;
}
