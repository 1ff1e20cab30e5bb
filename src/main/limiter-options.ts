import type { LimiterOptions } from '../limiter/options';
import type { Settings } from '../settings/settings';

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
