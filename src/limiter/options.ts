import type { LimitOptions } from './applied-limit';
import type { Offenders } from './offenders/offenders';
import type { UnmatchedCalls } from './unmatched-calls';

/** The names of the three response headers, as they are sent. */
export interface ResponseHeaderNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/** The settings of decisions. */
export interface LimiterOptions extends LimitOptions {
  /** CACHE_KEY_PREFIX */
  readonly cacheKeyPrefix: string;
  /** LocalCacheSizeInBytes; 0 disables the cache */
  readonly localCacheBytes: number;
  /** LOCAL_CACHE_MAX_AGE in whole seconds; Infinity: until the window ends */
  readonly localCacheMaxAge: number;
  /** STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT */
  readonly stopIncrementWhenOverLimit: boolean;
  /** SHADOW_MODE: the overall code is never OVER_LIMIT */
  readonly shadowMode: boolean;
  /** QUOTA_MODE: every descriptor is a quota descriptor */
  readonly quotaMode: boolean;
  /** Undefined unless LIMIT_RESPONSE_HEADERS_ENABLED */
  readonly responseHeaders: ResponseHeaderNames | undefined;
  /** RESPONSE_DYNAMIC_METADATA */
  readonly dynamicMetadata: boolean;
  /** RESPONSE_DYNAMIC_METADATA_DECISIONS: whether the dynamic metadata also contains how each code came about */
  readonly metadataDecisions?: boolean;
  /** Where calls are reported to which no rule applies; undefined: nowhere (UNMATCHED_WARNINGS) */
  readonly unmatched?: UnmatchedCalls | undefined;
  /** Where calls over their limits are counted by descriptor; undefined: nowhere (OFFENDERS_SIZE) */
  readonly offenders?: Offenders | undefined;
  /** Called with the key of each counter whose hits the store has subtracted: other processes may have it in their local caches */
  readonly onForgotten?: ((cacheKey: string) => void) | undefined;
}
