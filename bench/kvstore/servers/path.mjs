// The decision path without a door: as many questions as the doors' load has, asked and answered within the process.
import { createRequire } from 'node:module';
import { decisionPath, rule } from '../../service/decision-path.mjs';

const OUTSTANDING = 256;

export async function start({ dist, redisPort, keys }) {
  const require = createRequire(import.meta.url);
  const load = (path) => require(`${dist}/${path}.js`);
  const { kvstoreCounters } = load('sinks/counters/kvstore/kvstore-counters');
  const { Statistics } = load('statistics/statistics');
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
  const decide = decisionPath(load, { rules: [rule('user')], statistics, counters });

  let asked = 0;
  let answered = 0;
  const ask = () => {
    const value = `user-${asked % keys}`;
    asked += 1;
    const entries = [{ key: 'user', value }];
    const descriptors = [{ entries, limit: undefined, hitsAddend: -1, isNegativeHits: false }];
    decide({ domain: 'bench', descriptors, hitsAddend: 0 }, asker);
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
