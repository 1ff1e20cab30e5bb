import { Limiter } from '../../limiter/limiter';
import { Statistics } from '../../statistics/statistics';

/** A limiter like that of a service with the default settings, without a local cache, whose statistics are not read. */
export function defaultLimiter(): Limiter {
  const options = {
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
  return new Limiter(options, new Statistics(0));
}
