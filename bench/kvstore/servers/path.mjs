// The decision path without a server: as many outstanding calls as the load client has, made within the process.
import { createRequire } from 'node:module';
import { decisionPath, rule } from '../../service/decision-path.mjs';

const OUTSTANDING = 256;

export async function start({ dist, redisPort, keys }) {
  const require = createRequire(import.meta.url);
  function load(path) {
    return require(`${dist}/${path}.js`);
  }
  const { kvstoreCounters } = load('sinks/counters/kvstore/kvstore-counters');
  const { Statistics } = load('statistics/statistics');
  const statistics = new Statistics(100_000);
  function silent() {
    return undefined;
  }
  const counters = kvstoreCounters({
    main: {
      type: 'single',
      url: `127.0.0.1:${redisPort}`,
      variables: { url: 'KVSTORE_URL', socketType: 'KVSTORE_SOCKET_TYPE' },
      socketType: undefined,
      auth: undefined,
      sentinelAuth: undefined,
      tls: false,
      poolSize: 10,
      timeout: 10_000,
      pipelineWindow: 0,
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

  let sent = 0;
  let answered = 0;
  function send() {
    const value = `user-${sent % keys}`;
    sent += 1;
    const entries = [{ key: 'user', value }];
    const descriptors = [{ entries, limit: undefined, hitsAddend: -1, isNegativeHits: false }];
    decide({ domain: 'bench', descriptors, hitsAddend: 0 }, observer);
  }
  const observer = {
    verdict: () => {
      answered += 1;
      // The next call comes in another turn, as it would over a socket.
      setImmediate(send);
    },
    error: (error) => {
      throw error;
    },
  };
  for (let call = 0; call < OUTSTANDING; call += 1) send();
  return { port: 0, progress: () => answered };
}
