import type { InstanceSettings, Section } from '../../../settings/settings';
import type { Statistics } from '../../../statistics/statistics';
import type { Log } from '../../../streams/ports/log';
import type { StoreTlsFiles } from '../tls-material';

/** How to connect to one instance of the store. */
export interface InstanceOptions extends Omit<InstanceSettings, 'pipelineLimit' | 'socketType' | 'variables'> {
  /** Undefined: derived from the address. Used for a single server only. */
  readonly socketType: InstanceSettings['socketType'] | undefined;
  /** The variables that set these two settings, for messages. */
  readonly variables: Pick<InstanceSettings['variables'], 'url' | 'socketType'>;
  /** The address and credentials as they are now, called for each new connection. Undefined: they do not change. */
  readonly current?: (() => InstanceSecrets) | undefined;
}

/** What may change while the service runs, because it is in files: the credentials, but not the servers. */
export type InstanceSecrets = Pick<InstanceOptions, 'url' | 'auth' | 'sentinelAuth'>;

export interface KvstoreOptions {
  readonly main: InstanceOptions;
  /** The instance that counts limits per second; undefined unless KVSTORE_PERSECOND is set. */
  readonly perSecond: InstanceOptions | undefined;
  /** Used for both instances. */
  readonly tlsFiles: StoreTlsFiles;
  /** How long the start waits for the store, and the delays between attempts. */
  readonly startup: Omit<Section<'kvstoreStartup'>, 'variables'>;
  /** KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR */
  readonly closeConnectionOnReadonlyError: boolean;
  /** EXPIRATION_JITTER_MAX_SECONDS */
  readonly expirationJitterMaxSeconds: number;
  readonly statistics: Statistics;
  readonly log: Log;
}
