import type { Mogrifier } from './mogrifiers';
import type { ValueOf } from './table/setting';
import type { Row } from './table/settings-table';

type TableSettings = { readonly [R in Row as R['field']]: ValueOf<R> };

/**
 * The settings of a process, with one field for each row of the table; deeply frozen. Durations are in milliseconds,
 * with fractions; sizes are in bytes. A setting with neither a value nor a default is undefined.
 */
export interface Settings extends TableSettings {
  /** The mogrifiers that TAGGEDSTATS_MOGRIFIERS lists, in its order; empty unless USE_TAGGEDSTATS is true. */
  readonly mogrifiers: readonly Mogrifier[];
}

/** The field of a setting that has a variable. */
export type Field = Row['field'];

/**
 * The fields of the settings that each instance of the key-value store has: the main one, and that of per-second
 * limits.
 */
export const INSTANCES = {
  main: {
    type: 'kvstoreType',
    url: 'kvstoreUrl',
    socketType: 'kvstoreSocketType',
    auth: 'kvstoreAuth',
    sentinelAuth: 'kvstoreSentinelAuth',
    poolSize: 'kvstorePoolSize',
    timeout: 'kvstoreTimeout',
    poolOnEmptyBehavior: 'kvstorePoolOnEmptyBehavior',
    poolOnEmptyWaitDuration: 'kvstorePoolOnEmptyWaitDuration',
    pipelineWindow: 'kvstorePipelineWindow',
    clusterPipelineParallelism: 'kvstoreClusterPipelineParallelism',
    tls: 'kvstoreTls',
  },
  perSecond: {
    type: 'kvstorePersecondType',
    url: 'kvstorePersecondUrl',
    socketType: 'kvstorePersecondSocketType',
    auth: 'kvstorePersecondAuth',
    sentinelAuth: 'kvstorePersecondSentinelAuth',
    poolSize: 'kvstorePersecondPoolSize',
    timeout: 'kvstorePersecondTimeout',
    poolOnEmptyBehavior: 'kvstorePersecondPoolOnEmptyBehavior',
    poolOnEmptyWaitDuration: 'kvstorePersecondPoolOnEmptyWaitDuration',
    pipelineWindow: 'kvstorePersecondPipelineWindow',
    clusterPipelineParallelism: 'kvstorePersecondClusterPipelineParallelism',
    tls: 'kvstorePersecondTls',
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Field>>>>;

/** The settings of the TLS files that are used together. */
export const TLS_FILES = {
  grpc: { ca: 'grpcClientTlsCacert', cert: 'grpcServerTlsCert', key: 'grpcServerTlsKey' },
  debug: { ca: undefined, cert: 'debugTlsCert', key: 'debugTlsKey' },
  xds: { ca: 'configGrpcXdsServerTlsCacert', cert: 'configGrpcXdsClientTlsCert', key: 'configGrpcXdsClientTlsKey' },
  kvstore: { ca: 'kvstoreTlsCacert', cert: 'kvstoreTlsClientCert', key: 'kvstoreTlsClientKey' },
  plaincache: { ca: 'plaincacheTlsCacert', cert: 'plaincacheTlsClientCert', key: 'plaincacheTlsClientKey' },
} as const satisfies Readonly<Record<string, Readonly<Record<'ca' | 'cert' | 'key', Field | undefined>>>>;

/** Milliseconds after which calls are answered by policy, if STORE_DECISION_TIMEOUT does not say it. */
export const DECISION_TIMEOUT = 100;

export type InstanceFields = (typeof INSTANCES)[keyof typeof INSTANCES];

/** The settings of an instance of the key-value store. */
export type InstanceSettings = { readonly [Name in keyof InstanceFields]: Settings[InstanceFields[Name]] };

export function instanceSettings(settings: Settings, fields: InstanceFields): InstanceSettings {
  const values = Object.entries(fields).map(([name, field]) => [name, settings[field]]);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type of the keys is lost in `entries`
  return Object.fromEntries(values) as InstanceSettings;
}

/** Settings that are valid by themselves, for checks between them and of what is outside of them. */
export interface SettingsView {
  readonly settings: Settings;
  /** The variable that sets the setting, or else its neutral name. */
  readonly nameOf: (field: Field) => string;
  /** Whether the conditions hold under which the setting has an effect; false if that cannot be said. */
  readonly hasEffect: (field: Field) => boolean;
  /** Whether the environment sets the setting and it has an effect. */
  readonly isUsed: (field: Field) => boolean;
}
