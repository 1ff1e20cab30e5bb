// The decision path without a door: as many questions as the doors' load has, asked and answered within the process.
import { createRequire } from 'node:module';

const LIMIT = 4_000_000_000;
const OUTSTANDING = 256;

export async function start({ dist, redisPort, keys }) {
  const require = createRequire(import.meta.url);
  const load = (path) => require(`${dist}/${path}.js`);
  const { Limiter } = load('limiter/limiter');
  const { buildRuleset } = load('rules/ruleset');
  const { kvstoreCounters } = load('sinks/counters/kvstore/kvstore-counters');
  const { turnScheduler } = load('sources/turn-scheduler');
  const { Statistics } = load('statistics/statistics');
  const { decisions } = load('streams/decisions');
  const statistics = new Statistics(100_000);
  const silent = () => undefined;
  const counters = kvstoreCounters({
    main: {
      type: 'single',
      url: `127.0.0.1:${redisPort}`,
      socketType: undefined,
      auth: undefined,
      sentinelAuth: undefined,
      tls: false,
      poolSize: 10,
      timeout: 10_000,
      poolOnEmptyBehavior: 'CREATE',
      poolOnEmptyWaitDuration: 1_000,
      clusterPipelineParallelism: 1,
    },
    perSecond: undefined,
    tlsFiles: { caFile: undefined, certFile: undefined, keyFile: undefined, skipHostnameVerification: false },
    startup: { initialInterval: 100, maxInterval: 1_000, maxElapsedTime: 10_000 },
    closeConnectionOnReadonlyError: false,
    expirationJitterMaxSeconds: 300,
    statistics,
    log: { isDebug: false, debug: silent, info: silent, warn: silent, error: silent },
  });
  await new Promise((resolve, reject) => counters.ready$.subscribe({ complete: resolve, error: reject }));
  const rule = {
    key: 'user',
    value: '',
    rateLimit: { unit: 'HOUR', requestsPerUnit: LIMIT, unlimited: false, name: '', replaces: [] },
    shadowMode: false,
    quotaMode: false,
    detailedMetric: false,
    valueToMetric: false,
    shareThreshold: false,
    metadata: undefined,
    descriptors: [],
  };
  const ruleset = buildRuleset([{ domain: 'bench', descriptors: [rule] }]);
  const path = decisions({
    limiter: new Limiter(
      {
        cacheKeyPrefix: '',
        nearLimitRatio: 0.8,
        localCacheBytes: 0,
        stopIncrementWhenOverLimit: false,
        shadowMode: false,
        quotaMode: false,
        responseHeaders: undefined,
        dynamicMetadata: false,
      },
      statistics,
    ),
    ruleset: () => ruleset,
    counters,
    statistics,
    windowSpan: 0,
    windowsInFlight: counters.windowsInFlight,
    whenFull: counters.whenFull,
    scheduler: turnScheduler,
    onDefect: (error) => {
      throw error;
    },
  });
  path.windows$.subscribe();

  let asked = 0;
  let answered = 0;
  const ask = () => {
    const value = `user-${asked % keys}`;
    asked += 1;
    const entries = [{ key: 'user', value }];
    const descriptors = [{ entries, limit: undefined, hitsAddend: -1, isNegativeHits: false }];
    path.decide({ domain: 'bench', descriptors, hitsAddend: 0 }, asker);
  };
  const asker = {
    verdict: () => {
      answered += 1;
      // A caller asks again from a turn of its own, as it would over a socket.
      setImmediate(ask);
    },
    error: (error) => {
      throw error;
    },
  };
  for (let question = 0; question < OUTSTANDING; question += 1) ask();
  return { port: 0, progress: () => answered };
}
