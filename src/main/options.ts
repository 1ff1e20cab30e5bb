import type { LimiterOptions } from '../limiter/options';
import type { Settings } from '../settings/settings';
import type { InstanceOptions, KvstoreOptions } from '../sinks/counters/kvstore/connections/options';

/** What the settings say about decisions, as the limiter takes it. */
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

/** What the settings say about the key-value store, as it takes it. The checked settings have its addresses. */
export function kvstoreOptions(settings: Settings): Omit<KvstoreOptions, 'statistics' | 'log'> {
  return {
    main: mainInstance(settings),
    perSecond: settings.kvstorePersecond ? perSecondInstance(settings) : undefined,
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

function mainInstance(settings: Settings): InstanceOptions {
  return {
    type: settings.kvstoreType,
    url: settings.kvstoreUrl ?? '',
    socketType: settings.kvstoreSocketType,
    auth: settings.kvstoreAuth,
    sentinelAuth: settings.kvstoreSentinelAuth,
    tls: settings.kvstoreTls,
    poolSize: settings.kvstorePoolSize,
    timeout: settings.kvstoreTimeout,
    poolOnEmptyBehavior: settings.kvstorePoolOnEmptyBehavior,
    poolOnEmptyWaitDuration: settings.kvstorePoolOnEmptyWaitDuration,
    clusterPipelineParallelism: settings.kvstoreClusterPipelineParallelism,
  };
}

function perSecondInstance(settings: Settings): InstanceOptions {
  return {
    type: settings.kvstorePersecondType,
    url: settings.kvstorePersecondUrl ?? '',
    socketType: settings.kvstorePersecondSocketType,
    auth: settings.kvstorePersecondAuth,
    sentinelAuth: settings.kvstorePersecondSentinelAuth,
    tls: settings.kvstorePersecondTls,
    poolSize: settings.kvstorePersecondPoolSize,
    timeout: settings.kvstorePersecondTimeout,
    poolOnEmptyBehavior: settings.kvstorePersecondPoolOnEmptyBehavior,
    poolOnEmptyWaitDuration: settings.kvstorePersecondPoolOnEmptyWaitDuration,
    clusterPipelineParallelism: settings.kvstorePersecondClusterPipelineParallelism,
  };
}
