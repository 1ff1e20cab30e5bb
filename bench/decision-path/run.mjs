// The cost of one decision without a transport: from the bytes of a request to the bytes of its response, counted in
// memory, over 10,000 keys and on one hot key. The baseline is the generated codec alone, for the same messages.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

function load(path) {
  return require(`../../dist/${path}.js`);
}

const { MemoryCounters } = load('sinks/counters/memory/memory-counters');
const { decisions } = load('streams/decisions');
const { DEFAULT_OPTIONS } = load('limiter/options');
const { Limiter } = load('limiter/limiter');
const { readRuleFiles } = load('rules/files/read-rule-files');
const { buildRuleset } = load('rules/ruleset');
const { turnScheduler } = load('main/turn-scheduler');
const { decodeRequest } = load('grpc/rate-limit/decode-request');
const { encodeResponse } = load('grpc/rate-limit/encode-response');
const { RateLimitRequest, RateLimitResponse } = load('gen/envoy/service/ratelimit/v3/rls');
const { Statistics } = load('statistics/statistics');

const WARM_UP = 300_000;
const CALLS = 1_500_000;
/** Calls that arrive in one turn of the event loop. */
const CALLS_PER_TURN = 200;

function requestBytes(key, value) {
  return Buffer.from(
    RateLimitRequest.encode({
      domain: 'bench',
      descriptors: [{ entries: [{ key, value }], limit: undefined, hitsAddend: undefined, isNegativeHits: false }],
      hitsAddend: 0,
    }).finish(),
  );
}

const manyKeys = Array.from({ length: 10_000 }, (_, user) => requestBytes('user', `user-${user}`));
const hotKey = [requestBytes('hot', 'key')];

/** Limits that are never reached. */
const RULES = `
domain: bench
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 4000000000 }
  - key: hot
    value: key
    rate_limit: { unit: minute, requests_per_unit: 4000000000 }
`;

/** The decision path without servers, wired as in the service. */
function decisionPath() {
  const statistics = new Statistics(10_000);
  const files = [{ path: 'bench.yaml', content: Buffer.from(RULES) }];
  const ruleset = buildRuleset(readRuleFiles(files, { mergeDomainConfigs: false }).configs);
  const path = decisions({
    limiter: new Limiter(DEFAULT_OPTIONS, statistics),
    ruleset: () => ruleset,
    counters: new MemoryCounters({ maxKeys: 1_000_000, maxBytes: 1_000_000_000, now: Date.now }),
    statistics,
    scheduler: turnScheduler,
    onInternalError: (error) => {
      throw error;
    },
  });
  path.windows$.subscribe();
  return path.decide;
}

function servicePath() {
  const decide = decisionPath();
  let bytes = 0;
  const observer = {
    verdict: (verdict) => {
      bytes += encodeResponse(verdict).length;
    },
    error: (error) => {
      throw error;
    },
  };
  return (message) => decide(decodeRequest(message), observer);
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

/** CPU time of this process per call, in µs. */
function measure(call, messages) {
  return new Promise((resolve) => {
    let made = 0;
    let started;
    function turn() {
      for (let index = 0; index < CALLS_PER_TURN; index += 1) {
        call(messages[made % messages.length]);
        made += 1;
      }
      if (made === WARM_UP) started = process.cpuUsage();
      if (made < WARM_UP + CALLS) return setImmediate(turn);
      const { user, system } = process.cpuUsage(started);
      return resolve((user + system) / CALLS);
    }
    turn();
  });
}

const baseline = await measure(generatedCodec(), manyKeys);
const rows = [
  ['generated codec alone, constant response (baseline)', baseline],
  ['decision, 10,000 keys', await measure(servicePath(), manyKeys)],
  ['decision, one hot key', await measure(servicePath(), hotKey)],
];
for (const [name, cost] of rows) {
  console.log(`${name.padEnd(52)} ${cost.toFixed(2).padStart(6)} µs  × ${(cost / baseline).toFixed(2)}`);
}
process.exit(0);
