// The decision path without servers, wired as in the service, for benchmarks without a transport.

/** A rule as it is read from a rule file. Its limit is never reached. */
export function rule(key, value = '', more = {}) {
  return {
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
  };
}

/**
 * @param load returns a module of the build, given its path in src
 * @param rules the rules of the domain `bench`
 * @param options of the limiter, where they differ from the defaults
 * @param counters the counter store; in memory when omitted
 * @param decisionLog none when omitted
 * @returns `decide`, as the servers receive it
 */
export function decisionPath(load, { rules, statistics, options = {}, counters = memory(load), decisionLog }) {
  const limiterOptions = {
    cacheKeyPrefix: '',
    nearLimitRatio: 0.8,
    localCacheBytes: 0,
    localCacheMaxAge: Infinity,
    stopIncrementWhenOverLimit: false,
    shadowMode: false,
    quotaMode: false,
    responseHeaders: undefined,
    dynamicMetadata: false,
    ...options,
  };
  const ruleset = load('rules/ruleset').buildRuleset([{ domain: 'bench', descriptors: rules }]);
  const path = load('streams/decisions').decisions({
    limiter: new (load('limiter/limiter').Limiter)(limiterOptions, statistics),
    ruleset: () => ruleset,
    counters,
    statistics,
    decisionLog,
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
  return new MemoryCounters({ maxKeys: 1_000_000, maxBytes: 1_000_000_000, now: Date.now });
}
