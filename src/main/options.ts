import type { LimiterOptions } from '../limiter/options';
import type { LoadedSettings } from '../settings/read-settings';
import type { Settings } from '../settings/settings';
import type { InstanceField, InstancePrefix } from '../settings/table/kvstore-instance';
import type { InstanceOptions, KvstoreOptions } from '../sinks/counters/kvstore/connections/options';

/** The options of the limiter. */
export function limiterOptions(settings: Settings): LimiterOptions {
  return {
    cacheKeyPrefix: settings.cacheKeyPrefix,
    nearLimitRatio: settings.nearLimitRatio,
    localCacheBytes: settings.localCacheSizeInBytes,
    stopIncrementWhenOverLimit: settings.stopCacheKeyIncrementWhenOverlimit,
    shadowMode: settings.shadowMode,
    quotaMode: settings.quotaMode,
    responseHeaders: settings.limitResponseHeadersEnabled
      ? {
          limit: settings.limitLimitHeader,
          remaining: settings.limitRemainingHeader,
          reset: settings.limitResetHeader,
        }
      : undefined,
    dynamicMetadata: settings.responseDynamicMetadata,
  };
}

/** The options of the key-value store. Its addresses are set, because `readSettings` has checked them. */
export function kvstoreOptions(reading: LoadedSettings): Omit<KvstoreOptions, 'statistics' | 'log'> {
  const { settings } = reading;
  return {
    main: instanceOptions(reading, 'kvstore'),
    perSecond: settings.kvstorePersecond ? instanceOptions(reading, 'kvstorePersecond') : undefined,
    tlsFiles: {
      caFile: settings.kvstoreTlsCacert,
      certFile: settings.kvstoreTlsClientCert,
      keyFile: settings.kvstoreTlsClientKey,
      skipHostnameVerification: settings.kvstoreTlsSkipHostnameVerification,
    },
    startup: {
      initialInterval: settings.kvstoreStartupInitialInterval,
      maxInterval: settings.kvstoreStartupMaxInterval,
      maxElapsedTime: settings.kvstoreStartupMaxElapsedTime,
    },
    closeConnectionOnReadonlyError: settings.kvstoreCloseConnectionOnReadonlyError,
    expirationJitterMaxSeconds: settings.expirationJitterMaxSeconds,
  };
}

/** The options of one instance, from the settings with its prefix. */
function instanceOptions({ settings, nameOf }: LoadedSettings, instance: InstancePrefix): InstanceOptions {
  function get<Name extends InstanceField>(name: Name) {
    return settings[`${instance}${name}` as const];
  }
  return {
    type: get('Type'),
    url: get('Url') ?? '',
    variables: { url: nameOf(`${instance}Url`), socketType: nameOf(`${instance}SocketType`) },
    socketType: get('SocketType'),
    auth: get('Auth'),
    sentinelAuth: get('SentinelAuth'),
    tls: get('Tls'),
    poolSize: get('PoolSize'),
    timeout: get('Timeout'),
    pipelineWindow: settings[`${instance}PipelineWindow`],
    poolOnEmptyBehavior: get('PoolOnEmptyBehavior'),
    poolOnEmptyWaitDuration: get('PoolOnEmptyWaitDuration'),
    clusterPipelineParallelism: get('ClusterPipelineParallelism'),
  };
}
