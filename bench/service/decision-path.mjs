// The service behind its doors, put together as the service does it, for benchmarks that time it without a transport.

/** A rule as the reader of rule files would give it; its limit is out of reach. */
export const rule = (key, value = '', more = {}) => ({
  key,
  value,
  rateLimit: { unit: 'MINUTE', requestsPerUnit: 4_000_000_000, unlimited: false, name: '', replaces: [] },
  shadowMode: false,
  quotaMode: false,
  detailedMetric: false,
  valueToMetric: false,
  shareThreshold: false,
  metadata: undefined,
  descriptors: [],
  ...more,
});

/**
 * @param load gives a module of the build by its path in src
 * @param rules those of the domain `bench`
 * @param counters where to count; in memory when left out
 * @returns the question's `decide`, as the doors are given it
 */
export function decisionPath(load, { rules, statistics, counters = memory(load) }) {
  const limiterOptions = {
    cacheKeyPrefix: '',
    nearLimitRatio: 0.8,
    localCacheBytes: 0,
    stopIncrementWhenOverLimit: false,
    shadowMode: false,
    quotaMode: false,
    responseHeaders: undefined,
    dynamicMetadata: false,
  };
  const ruleset = load('rules/ruleset').buildRuleset([{ domain: 'bench', descriptors: rules }]);
  const path = load('streams/decisions').decisions({
    limiter: new (load('limiter/limiter').Limiter)(limiterOptions, statistics),
    ruleset: () => ruleset,
    counters,
    statistics,
    windowSpan: 0,
    windowsInFlight: counters.windowsInFlight ?? 1,
    whenFull: counters.whenFull,
    scheduler: load('sources/event-loop-turns').turnScheduler,
    onInternalError: (error) => {
      throw error;
    },
  });
  path.windows$.subscribe();
  return path.decide;
}

function memory(load) {
  const { MemoryCounters } = load('sinks/counters/memory/memory-counters');
  return new MemoryCounters({ maxKeys: 1_000_000, now: Date.now });
}
