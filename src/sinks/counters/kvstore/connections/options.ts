import type { Statistics } from '../../../../statistics/statistics';
import type { Log } from '../../../../streams/ports/log';
import type { StoreTlsFiles } from '../../tls-material';

/** What happens to windows while every connection of a pool is busy: KVSTORE_POOL_ON_EMPTY_BEHAVIOR. */
export type PoolOnEmpty = 'CREATE' | 'ERROR' | 'WAIT';

/** How to connect to one instance of the store; each field is the setting of the same name. Times are in milliseconds. */
export interface InstanceOptions {
  readonly type: 'single' | 'sentinel' | 'cluster';
  readonly url: string;
  /** The variables that set these two options, for messages. */
  readonly variables: { readonly url: string; readonly socketType: string };
  /** Undefined: derived from the address. Used for a single server only. */
  readonly socketType: 'tcp' | 'tcp4' | 'tcp6' | 'unix' | undefined;
  /** `password` or `user:password`; takes precedence over the credentials of the address. */
  readonly auth: string | undefined;
  readonly sentinelAuth: string | undefined;
  /** The address and credentials as they are now, called for each new connection. Undefined: they do not change. */
  readonly current?: (() => InstanceSecrets) | undefined;
  readonly tls: boolean;
  readonly poolSize: number;
  /** 0: no limit. */
  readonly timeout: number;
  /** How long a pipeline window of each server gathers. */
  readonly pipelineWindow: number;
  readonly poolOnEmptyBehavior: PoolOnEmpty;
  readonly poolOnEmptyWaitDuration: number;
  readonly clusterPipelineParallelism: number;
}

/** What may change while the service runs, because it is in files: the credentials, but not the servers. */
export type InstanceSecrets = Pick<InstanceOptions, 'url' | 'auth' | 'sentinelAuth'>;

/** How long the start waits for the store, and the delays between attempts: KVSTORE_STARTUP_*, in milliseconds. */
export interface StartupOptions {
  readonly initialInterval: number;
  readonly maxInterval: number;
  /** 0: no limit. */
  readonly maxElapsedTime: number;
}

export interface KvstoreOptions {
  readonly main: InstanceOptions;
  /** The instance that counts limits per second; undefined unless KVSTORE_PERSECOND is set. */
  readonly perSecond: InstanceOptions | undefined;
  /** Used for both instances. */
  readonly tlsFiles: StoreTlsFiles;
  readonly startup: StartupOptions;
  /** KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR */
  readonly closeConnectionOnReadonlyError: boolean;
  /** EXPIRATION_JITTER_MAX_SECONDS */
  readonly expirationJitterMaxSeconds: number;
  readonly statistics: Statistics;
  readonly log: Log;
}
