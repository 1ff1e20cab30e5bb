import type { LimiterOptions } from '../limiter/options';
import { filesOf } from '../net/reloaded-files';
import type { LoadedSettings } from '../settings/read-settings';
import {
  DECISION_TIMEOUT,
  INSTANCES,
  type InstanceFields,
  type Settings,
  TLS_FILES,
  instanceSettings,
} from '../settings/settings';
import { type InstanceOptions, type KvstoreOptions, replacementProblem } from '../sinks/counters/kvstore/deployment';
import type { PlaincacheOptions } from '../sinks/counters/plaincache/plaincache-counters';
import { hasPolicies } from '../settings/stores';
import type { Log } from '../log/log';
import type { DecisionTimeouts } from '../streams/deadline';
import { currentSecret } from '../sources/secret-files';

/** Milliseconds between checks of a memcached server without requests, where the health of the service follows it. */
const CHECKED_EVERY = 1_000;

/** STORE_DECISION_TIMEOUT with its default, which is that of calls that only limits with a policy count. */
export function decisionTimeouts(reading: LoadedSettings): DecisionTimeouts {
  const { storeDecisionTimeout: ofCalls } = reading.settings;
  return { ofCalls, byPolicy: ofCalls ?? (hasPolicies(reading) ? DECISION_TIMEOUT : undefined) };
}

/** Milliseconds after which calls of the setting's policy are answered; undefined: the store has an end of its own. */
export function decisionTimeout(reading: LoadedSettings): number | undefined {
  const { ofCalls, byPolicy } = decisionTimeouts(reading);
  return reading.settings.storeFailurePolicy === 'error' ? ofCalls : byPolicy;
}

/** The options of the limiter. */
export function limiterOptions(settings: Settings): LimiterOptions {
  const headers = settings.limitResponseHeaders ?? (settings.limitResponseHeadersEnabled ? 'draft03' : 'off');
  return {
    onStoreFailure: settings.storeFailurePolicy,
    cacheKeyPrefix: settings.cacheKeyPrefix,
    nearLimitRatio: settings.nearLimitRatio,
    localCacheBytes: settings.localCacheSizeInBytes,
    localCacheMaxAge: settings.localCacheMaxAge === 0 ? Infinity : Math.ceil(settings.localCacheMaxAge / 1000),
    stopIncrementWhenOverLimit: settings.stopCacheKeyIncrementWhenOverlimit,
    shadowMode: settings.shadowMode,
    quotaMode: settings.quotaMode,
    responseHeaders: ['draft03', 'both'].includes(headers)
      ? {
          limit: settings.limitLimitHeader,
          remaining: settings.limitRemainingHeader,
          reset: settings.limitResetHeader,
          isResetTime: settings.limitResetHeaderFormat === 'timestamp',
        }
      : undefined,
    hasStructuredHeaders: ['structured', 'both'].includes(headers),
    hasRetryAfter: settings.limitRetryAfterEnabled,
    dynamicMetadata: settings.responseDynamicMetadata,
    metadataDecisions: settings.responseDynamicMetadataDecisions,
    limitNameFromRule: settings.limitNameFromRule,
  };
}

/** The options of the key-value store. Its addresses are set, because `readSettings` has checked them. */
export function kvstoreOptions(
  reading: LoadedSettings,
  log: Log,
): Omit<KvstoreOptions, 'statistics' | 'servers' | 'scheduler'> {
  const { settings } = reading;
  return {
    main: instanceOptions(reading, INSTANCES.main, log),
    perSecond: settings.kvstorePersecond ? instanceOptions(reading, INSTANCES.perSecond, log) : undefined,
    tlsFiles: {
      ...filesOf(reading, TLS_FILES.kvstore),
      skipHostnameVerification: settings.kvstoreTlsSkipHostnameVerification,
    },
    startup: {
      initialInterval: settings.kvstoreStartupInitialInterval,
      maxInterval: settings.kvstoreStartupMaxInterval,
      maxElapsedTime: settings.kvstoreStartupMaxElapsedTime,
    },
    closeConnectionOnReadonlyError: settings.kvstoreCloseConnectionOnReadonlyError,
    hasDecisionTimeout: decisionTimeouts(reading).byPolicy !== undefined,
    expirationJitterMaxSeconds: settings.expirationJitterMaxSeconds,
    dueReservationsKey: `${settings.cacheKeyPrefix}weir:reservation:due`,
    freedKeysChannel: settings.localCacheSizeInBytes > 0 ? `${settings.cacheKeyPrefix}weir_freed_keys` : undefined,
    log,
  };
}

/**
 * The options of the memcached store. Either its servers or their record are set, because `readSettings` has checked
 * them.
 */
export function plaincacheOptions(
  reading: LoadedSettings,
): Omit<PlaincacheOptions, 'statistics' | 'servers' | 'log' | 'scheduler'> {
  const { settings, given } = reading;
  return {
    hostPort: settings.plaincacheHostPort,
    srv: settings.plaincacheSrv,
    srvRefresh: settings.plaincacheSrvRefresh,
    tlsFiles: settings.plaincacheTls
      ? {
          ...filesOf(reading, TLS_FILES.plaincache),
          skipHostnameVerification: settings.plaincacheTlsSkipHostnameVerification,
        }
      : undefined,
    timeoutMs: decisionTimeout(reading),
    checkEvery: settings.kvstoreHealthCheckActiveConnection ? CHECKED_EVERY : undefined,
    countsAsZero: !given.has('storeFailurePolicy'),
    windowSpan: settings.kvstorePipelineWindow,
    expirationJitterMaxSeconds: settings.expirationJitterMaxSeconds,
  };
}

/** The settings of one instance; its secrets follow the files that contain them. */
function instanceOptions(reading: LoadedSettings, fields: InstanceFields, log: Log): InstanceOptions {
  const { settings, files, nameOf } = reading;
  const variables = { url: nameOf(fields.url), socketType: nameOf(fields.socketType) };
  const options: InstanceOptions = { ...instanceSettings(settings, fields), variables };
  if (![fields.url, fields.auth, fields.sentinelAuth].some((field) => files.has(field))) return options;
  const url = currentSecret(reading, fields.url, { log, problemOf: (next) => replacementProblem(options, next) });
  const auth = currentSecret(reading, fields.auth, { log });
  const sentinelAuth = currentSecret(reading, fields.sentinelAuth, { log });
  return { ...options, current: () => ({ url: url(), auth: auth(), sentinelAuth: sentinelAuth() }) };
}
