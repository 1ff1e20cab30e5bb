// What it costs to explain decisions: the decision path of run.mjs with the offenders counted, 1 % of all decisions in the decision
// log, and unmatched calls reported, against the same path without. Runs alternate, because the speed of a machine drifts.
import { createRequire } from 'node:module';
import { decisionPath, rule } from '../service/decision-path.mjs';
import { explainedParts } from '../service/explained-parts.mjs';
import { median } from '../service/measurements.mjs';

const require = createRequire(import.meta.url);

function load(path) {
  return require(`../../dist/${path}.js`);
}

const { decodeRequest } = load('grpc/rate-limit/decode-request');
const { encodeResponse } = load('grpc/rate-limit/encode-response');
const { RateLimitRequest } = load('gen/envoy/service/ratelimit/v3/rls');
const { Statistics } = load('statistics/statistics');

const WARM_UP = 200_000;
const CALLS = 100_000;
const ROUNDS = 21;
/** Calls that arrive in one turn of the event loop. */
const CALLS_PER_TURN = 200;

const WITHIN = { unit: 'DAY', requestsPerUnit: 4_000_000_000, unlimited: false, name: '', replaces: [] };
const BANNED = { ...WITHIN, requestsPerUnit: 0 };
const RULES = [rule('within', '', { rateLimit: WITHIN }), rule('over', '', { rateLimit: BANNED })];

function messagesOf(count, key) {
  return Array.from({ length: count }, (_, user) =>
    Buffer.from(
      RateLimitRequest.encode({
        domain: 'bench',
        descriptors: [
          {
            entries: [{ key: typeof key === 'string' ? key : key(user), value: `user-${user}` }],
            limit: undefined,
            hitsAddend: undefined,
            isNegativeHits: false,
          },
        ],
        hitsAddend: 0,
      }).finish(),
    ),
  );
}

const LOADS = [
  ['within limits, 10,000 keys', messagesOf(10_000, 'within')],
  ['a tenth over, 10,000 keys', messagesOf(10_000, (user) => (user % 10 === 0 ? 'over' : 'within'))],
  ['all over, 10,000 keys', messagesOf(10_000, 'over')],
  ['all over, 500 keys', messagesOf(500, 'over')],
  ['all over, one key', messagesOf(1, 'over')],
  ['no rule matches', messagesOf(10_000, 'unknown')],
];

function servicePath(isExplained) {
  const decide = decisionPath(load, {
    rules: RULES,
    statistics: new Statistics(10_000),
    ...(isExplained && explainedParts(load)),
  });
  let bytes = 0;
  const caller = { peer: { remoteAddress: '127.0.0.1', remotePort: 50_000 }, metadata: () => undefined };
  const observer = {
    caller,
    verdict: (verdict) => {
      bytes += encodeResponse(verdict).length;
    },
    error: (error) => {
      throw error;
    },
  };
  return (message) => decide(decodeRequest(message), observer);
}

/** CPU time of this process per call, in µs. */
function measure(call, messages, calls = CALLS) {
  return new Promise((resolve) => {
    let made = 0;
    const started = process.cpuUsage();
    function turn() {
      for (let index = 0; index < CALLS_PER_TURN; index += 1) {
        call(messages[made % messages.length]);
        made += 1;
      }
      if (made < calls) return setImmediate(turn);
      const { user, system } = process.cpuUsage(started);
      return resolve((user + system) / calls);
    }
    turn();
  });
}

/** The median of the ratios between neighbouring runs, each with the mean of the runs around it. */
async function compare(messages) {
  const [plain, explained] = [servicePath(false), servicePath(true)];
  for (const call of [plain, explained]) await measure(call, messages, WARM_UP);
  const ratios = [];
  let before = await measure(plain, messages);
  const plains = [before];
  for (let round = 0; round < ROUNDS; round += 1) {
    const cost = await measure(explained, messages);
    const after = await measure(plain, messages);
    ratios.push((2 * cost) / (before + after));
    plains.push(after);
    before = after;
  }
  return { plain: median(plains), ratio: median(ratios) };
}

for (const [name, messages] of LOADS) {
  const { plain, ratio } = await compare(messages);
  console.log(`${name.padEnd(28)} ${plain.toFixed(2).padStart(6)} µs without  × ${ratio.toFixed(3)}`);
}
process.exit(0);
