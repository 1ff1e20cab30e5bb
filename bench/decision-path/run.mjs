// What one decision costs without a transport: bytes in, a verdict's bytes out, on the memory store. Printed beside what the
// generated codec alone costs for the same messages, and beside the same on a hot key.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const load = (path) => require(`../../dist/${path}.js`);
const { decodeRequest } = load('grpc/rate-limit/decode-request');
const { encodeResponse } = load('grpc/rate-limit/encode-response');
const { RateLimitRequest, RateLimitResponse } = load('gen/envoy/service/ratelimit/v3/rls');
const { Limiter } = load('limiter/limiter');
const { buildRuleset } = load('rules/ruleset');
const { MemoryCounters } = load('sinks/counters/memory/memory-counters');
const { turnScheduler } = load('sources/turn-scheduler');
const { Statistics } = load('statistics/statistics');
const { decisions } = load('streams/decisions');

const WARM_UP = 300_000;
const CALLS = 1_500_000;
/** Calls that arrive in one turn of the event loop. */
const TOGETHER = 200;

const rule = (key, value) => ({
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
});
const ruleset = buildRuleset([{ domain: 'bench', descriptors: [rule('user', ''), rule('hot', 'key')] }]);

const requestBytes = (key, value) =>
  Buffer.from(
    RateLimitRequest.encode({
      domain: 'bench',
      descriptors: [{ entries: [{ key, value }], limit: undefined, hitsAddend: undefined, isNegativeHits: false }],
      hitsAddend: 0,
    }).finish(),
  );
const manyKeys = Array.from({ length: 10_000 }, (_, user) => requestBytes('user', `user-${user}`));
const hotKey = [requestBytes('hot', 'key')];

function servicePath() {
  const statistics = new Statistics(10_000);
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
    counters: new MemoryCounters({ maxKeys: 1_000_000, now: Date.now }),
    statistics,
    windowSpan: 0,
    windowsInFlight: 1,
    scheduler: turnScheduler,
    onDefect: (error) => {
      throw error;
    },
  });
  path.windows$.subscribe();
  let bytes = 0;
  const asker = {
    verdict: (verdict) => {
      bytes += encodeResponse(verdict).length;
    },
    error: (error) => {
      throw error;
    },
  };
  return (message) => path.decide(decodeRequest(message), asker);
}

function generatedCodec() {
  const constant = {
    overallCode: 1,
    statuses: [
      {
        code: 1,
        currentLimit: { requestsPerUnit: 4_000_000_000, unit: 2, name: '' },
        limitRemaining: 3_999_999_999,
        durationUntilReset: { seconds: 30n, nanos: 0 },
      },
    ],
    responseHeadersToAdd: [],
    requestHeadersToAdd: [],
    rawBody: Buffer.alloc(0),
    dynamicMetadata: undefined,
  };
  let bytes = 0;
  return (message) => {
    RateLimitRequest.decode(message);
    bytes += RateLimitResponse.encode(constant).finish().length;
  };
}

/** CPU of this process in µs for each call. */
function measure(call, messages) {
  return new Promise((resolve) => {
    let made = 0;
    let started;
    const turn = () => {
      for (let index = 0; index < TOGETHER; index += 1) {
        call(messages[made % messages.length]);
        made += 1;
      }
      if (made === WARM_UP) started = process.cpuUsage();
      if (made < WARM_UP + CALLS) return setImmediate(turn);
      const { user, system } = process.cpuUsage(started);
      return resolve((user + system) / CALLS);
    };
    turn();
  });
}

const baseline = await measure(generatedCodec(), manyKeys);
const rows = [
  ['generated codec alone, constant answer (baseline)', baseline],
  ['whole decision, 10,000 keys', await measure(servicePath(), manyKeys)],
  ['whole decision, one hot key', await measure(servicePath(), hotKey)],
];
for (const [name, cost] of rows) {
  console.log(`${name.padEnd(52)} ${cost.toFixed(2).padStart(6)} µs  × ${(cost / baseline).toFixed(2)}`);
}
process.exit(0);
