// What one decision costs without a transport: bytes in, a verdict's bytes out, on the memory store. Printed beside what the
// generated codec alone costs for the same messages, and beside the same on a hot key.
import { createRequire } from 'node:module';
import { decisionPath, rule } from '../service/decision-path.mjs';

const require = createRequire(import.meta.url);
const load = (path) => require(`../../dist/${path}.js`);
const { decodeRequest } = load('grpc/rate-limit/decode-request');
const { encodeResponse } = load('grpc/rate-limit/encode-response');
const { RateLimitRequest, RateLimitResponse } = load('gen/envoy/service/ratelimit/v3/rls');
const { Statistics } = load('statistics/statistics');

const WARM_UP = 300_000;
const CALLS = 1_500_000;
/** Calls that arrive in one turn of the event loop. */
const TOGETHER = 200;

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
  const rules = [rule('user'), rule('hot', 'key')];
  const decide = decisionPath(load, { rules, statistics: new Statistics(10_000) });
  let bytes = 0;
  const asker = {
    verdict: (verdict) => {
      bytes += encodeResponse(verdict).length;
    },
    error: (error) => {
      throw error;
    },
  };
  return (message) => decide(decodeRequest(message), asker);
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
