import type { LimiterOptions } from '../limiter/options';
import type { LoadedSettings } from '../settings/read-settings';
import type { InstanceField, InstancePrefix, Settings } from '../settings/settings';
import type { InstanceOptions, KvstoreOptions } from '../sinks/counters/kvstore/connections/options';
import { replacementProblem } from '../sinks/counters/kvstore/stores/deployment';
import type { PlaincacheOptions } from '../sinks/counters/plaincache/plaincache-counters';
import type { Log } from '../streams/ports/log';
import { currentSecret } from './secret-files';

/** The options of the limiter. */
export function limiterOptions(settings: Settings): LimiterOptions {
  return {
    cacheKeyPrefix: settings.cacheKeyPrefix,
    nearLimitRatio: settings.nearLimitRatio,
    localCacheBytes: settings.localCacheSizeInBytes,
    localCacheMaxAge: settings.localCacheMaxAge === 0 ? Infinity : Math.ceil(settings.localCacheMaxAge / 1000),
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
    metadataDecisions: settings.responseDynamicMetadataDecisions,
    limitNameFromRule: settings.limitNameFromRule,
  };
}

/** The options of the key-value store. Its addresses are set, because `readSettings` has checked them. */
export function kvstoreOptions(reading: LoadedSettings, log: Log): Omit<KvstoreOptions, 'statistics'> {
  const { settings, nameOf } = reading;
  return {
    main: withCurrentSecrets(reading, 'kvstore', log),
    perSecond: settings.kvstorePersecond ? withCurrentSecrets(reading, 'kvstorePersecond', log) : undefined,
    tlsFiles: {
      caFile: settings.kvstoreTlsCacert,
      certFile: settings.kvstoreTlsClientCert,
      keyFile: settings.kvstoreTlsClientKey,
      skipHostnameVerification: settings.kvstoreTlsSkipHostnameVerification,
      variables: {
        caFile: nameOf('kvstoreTlsCacert'),
        certFile: nameOf('kvstoreTlsClientCert'),
        keyFile: nameOf('kvstoreTlsClientKey'),
      },
    },
    startup: {
      initialInterval: settings.kvstoreStartupInitialInterval,
      maxInterval: settings.kvstoreStartupMaxInterval,
      maxElapsedTime: settings.kvstoreStartupMaxElapsedTime,
    },
    closeConnectionOnReadonlyError: settings.kvstoreCloseConnectionOnReadonlyError,
    expirationJitterMaxSeconds: settings.expirationJitterMaxSeconds,
    log,
  };
}

/** The options of the memcached store. Either its servers or their record are set, because `readSettings` has checked them. */
export function plaincacheOptions({ settings, nameOf }: LoadedSettings): Omit<PlaincacheOptions, 'statistics' | 'log'> {
  return {
    servers:
      settings.plaincacheSrv === undefined
        ? settings.plaincacheHostPort
        : { record: settings.plaincacheSrv, refresh: settings.plaincacheSrvRefresh },
    maxIdleConnections: settings.plaincacheMaxIdleConns,
    tlsFiles: settings.plaincacheTls
      ? {
          caFile: settings.plaincacheTlsCacert,
          certFile: settings.plaincacheTlsClientCert,
          keyFile: settings.plaincacheTlsClientKey,
          skipHostnameVerification: settings.plaincacheTlsSkipHostnameVerification,
          variables: {
            caFile: nameOf('plaincacheTlsCacert'),
            certFile: nameOf('plaincacheTlsClientCert'),
            keyFile: nameOf('plaincacheTlsClientKey'),
          },
        }
      : undefined,
    windowSpan: settings.kvstorePipelineWindow,
    expirationJitterMaxSeconds: settings.expirationJitterMaxSeconds,
  };
}

/** The options of one instance; its secrets follow the files that contain them. */
function withCurrentSecrets(reading: LoadedSettings, instance: InstancePrefix, log: Log): InstanceOptions {
  const options = instanceOptions(reading, instance);
  const [urlField, authField, sentinelField] = [
    `${instance}Url`,
    `${instance}Auth`,
    `${instance}SentinelAuth`,
  ] as const;
  if (![urlField, authField, sentinelField].some((field) => reading.files.has(field))) return options;
  function problemOf(url = '') {
    return replacementProblem(options, url);
  }
  const url = currentSecret(reading, urlField, { log, problemOf });
  const auth = currentSecret(reading, authField, { log });
  const sentinelAuth = currentSecret(reading, sentinelField, { log });
  return { ...options, current: () => ({ url: url() ?? '', auth: auth(), sentinelAuth: sentinelAuth() }) };
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
