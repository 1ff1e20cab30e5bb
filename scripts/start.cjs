// Runs the built service with the example rules and, once it listens, prints what to try: npm start.
const { readFileSync } = require('node:fs');
const path = require('node:path');
const { parseEnv } = require('node:util');
const { run } = require('../dist/main.js');
const { matchRule } = require('../dist/rules/ruleset.js');

/** Settings of quickstart.env that would contradict settings of the environment: each with what replaces it. */
const REPLACED = [
  [/^BACKEND_TYPE$/, /^(?:(?:KVSTORE|REDIS)_URL(?:_FILE)?|(?:PLAINCACHE|MEMCACHE)_(?:HOST_PORT|SRV))=/],
  [/^DISABLE_STATS$/, /^USE_(?:PUSHSTATS|STATSD|TAGGEDSTATS|DOG_STATSD|PULLMETRICS|PROMETHEUS)=(?:1|t|true)$/i],
  [/^RUNTIME_/, /^CONFIG_TYPE=(?!FILE$)/i],
];

/** The settings of quickstart.env that the environment neither sets nor replaces. */
function quickstartSettings(environment) {
  const given = Object.entries(environment).filter(([, value]) => value !== '');
  const settings = parseEnv(readFileSync(path.join(__dirname, '../examples/quickstart.env'), 'utf8'));
  function isReplaced(name) {
    return REPLACED.some(
      ([pattern, replacement]) =>
        pattern.test(name) && given.some(([other, value]) => replacement.test(`${other}=${value}`)),
    );
  }
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !(name in environment) && !isReplaced(name)));
}

const settings = quickstartSettings(process.env);

/** Rules of the largest rulesets that are looked at. */
const MAX_RULES = 10_000;
/** What needs no quotes in a shell, in JSON and in a descriptor of weir-client. */
const PLAIN = /^[\w./:@-]+$/;

/** A value that a rule matches, unless a more specific one does. */
function exampleFor({ key, value }) {
  if (value !== '') return value.replaceAll('*', 'x');
  return key === 'user' ? 'anna' : 'example';
}

/**
 * Calls that match the active rules: one with a single entry and one with several, if there are such rules. Those with
 * the smallest limits above 0 are chosen, which are over the soonest.
 */
function exampleCalls(domains) {
  const smallest = [];
  let left = MAX_RULES;
  for (const [domain, top] of domains) {
    const entries = [];
    for (const { rule, depth } of top.walk()) {
      if (left === 0) break;
      left -= 1;
      entries.length = depth;
      entries.push({ key: rule.key, value: exampleFor(rule) });
      const { requestsPerUnit = 0 } = rule.limit ?? {};
      const place = Math.min(depth, 1);
      if (requestsPerUnit === 0 || requestsPerUnit >= (smallest[place]?.requestsPerUnit ?? Infinity)) continue;
      const isPlain = [domain, ...entries.flatMap(Object.values)].every((text) => PLAIN.test(text));
      if (isPlain && matchRule(top, entries) === rule)
        smallest[place] = { requestsPerUnit, domain, entries: [...entries] };
    }
  }
  return smallest.filter(Boolean);
}

function commandsFor(calls, { grpc, http }) {
  if (calls.length === 0) return 'No rule has a limit yet.\n';
  const [overHttp, overGrpc] = [calls[0], calls.at(-1)];
  const body = { domain: overHttp.domain, descriptors: [{ entries: overHttp.entries }] };
  const descriptor = overGrpc.entries.map(({ key, value }) => `${key}=${value}`).join(',');
  return `Try it in another terminal:

  curl -s -X POST http://localhost:${http}/json \\
    -d '${JSON.stringify(body)}'

  node dist/cli/weir-client.js -address localhost:${grpc} -domain ${overGrpc.domain} -descriptors ${descriptor}
`;
}

function printSuggestions({ metrics, rules, ...listeners }) {
  const [grpc, http, debug] = [listeners.grpc, listeners.http, listeners.debug].map((at) => at.port ?? at);
  const facts = [
    ...(metrics === undefined ? [] : [`Metrics for Prometheus are on port ${metrics.port}.`]),
    ...('BACKEND_TYPE' in settings ? ['Counters are stored in this process.'] : []),
    ...('RUNTIME_ROOT' in settings ? ['The rules are in examples/config/ and are reloaded when a file changes.'] : []),
  ];
  process.stderr.write(`
weir is running: gRPC on port ${grpc}, HTTP on port ${http}, debug on port ${debug}.
${facts.map((fact) => `${fact}\n`).join('')}Press Ctrl+C to stop.

${commandsFor(exampleCalls(rules?.ruleset.domains ?? []), { grpc, http })}
Open http://localhost:${debug}/ in a browser for the console: live numbers, rules, and why a call is limited.

`);
}

void run({ ...settings, ...process.env }, printSuggestions).then((code) => process.exit(code));
