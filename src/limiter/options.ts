import type { Leases } from '../counting/leases';
import type { LimitOptions } from '../counting/limit';
import type { LocalCounts } from './local-counts';
import type { HeavyHitters } from './heavy-hitters';
import type { AskedLimits } from './asked-limits';
import type { UnmatchedCalls } from './unmatched-calls';
import type { ResponseHeaderNames } from './verdict';

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
  /** Undefined unless LIMIT_RESPONSE_HEADERS is `draft03` or `both` */
  readonly responseHeaders: ResponseHeaderNames | undefined;
  /** LIMIT_RESPONSE_HEADERS is `structured` or `both` */
  readonly hasStructuredHeaders?: boolean;
  /** LIMIT_RETRY_AFTER_ENABLED */
  readonly hasRetryAfter?: boolean;
  /** RESPONSE_DYNAMIC_METADATA */
  readonly dynamicMetadata: boolean;
  /** RESPONSE_DYNAMIC_METADATA_DECISIONS: whether the dynamic metadata also contains how each code came about */
  readonly metadataDecisions?: boolean;
  /** Where calls are reported to which no rule applies; undefined: nowhere (UNMATCHED_WARNINGS) */
  readonly unmatched?: UnmatchedCalls | undefined;
  /** Where limits are reported that are asked in vain; undefined: nowhere */
  readonly asked?: AskedLimits | undefined;
  /** Where calls over their limits are counted by descriptor; undefined: nowhere (OFFENDERS_SIZE) */
  readonly offenders?: HeavyHitters | undefined;
  /** Undefined: every call is counted in the store. */
  readonly leaseTable?: Leases | undefined;
  /** Counts for the policy `local`; undefined: the store is in this instance, and does not fail */
  readonly local?: LocalCounts | undefined;
  /**
   * Called with the key of each counter whose hits the store has subtracted: other processes may have it in their local
   * caches
   */
  readonly onForgotten?: ((cacheKey: string) => void) | undefined;
}

/** The options of a service with the default settings, without a local cache. */
export const DEFAULT_OPTIONS: LimiterOptions = {
  cacheKeyPrefix: '',
  nearLimitRatio: 0.8,
  localCacheBytes: 0,
  localCacheMaxAge: Infinity,
  stopIncrementWhenOverLimit: false,
  shadowMode: false,
  quotaMode: false,
  responseHeaders: undefined,
  dynamicMetadata: false,
};
