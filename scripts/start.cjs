// Runs the built service with the example rules and, once it listens, prints what to try: npm start.
const { readFileSync } = require('node:fs');
const path = require('node:path');
const { parseEnv } = require('node:util');
const { run } = require('../dist/main.js');

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

function printSuggestions({ metrics, ...listeners }) {
  const [grpc, http, debug] = [listeners.grpc, listeners.http, listeners.debug].map((at) => at.port ?? at);
  const facts = [
    ...(metrics === undefined ? [] : [`Metrics for Prometheus are on port ${metrics.port}.`]),
    ...('BACKEND_TYPE' in settings ? ['Counters are stored in this process.'] : []),
    ...('RUNTIME_ROOT' in settings ? ['The rules are in examples/config/ and are reloaded when a file changes.'] : []),
  ];
  process.stderr.write(`
weir is running: gRPC on port ${grpc}, HTTP on port ${http}, debug on port ${debug}.
${facts.map((fact) => `${fact}\n`).join('')}Press Ctrl+C to stop.

Try it in another terminal:

  curl -s -X POST http://localhost:${http}/json \\
    -d '{"domain": "shop", "descriptors": [{"entries": [{"key": "user", "value": "anna"}]}]}'

  node dist/cli/weir-client.js -address localhost:${grpc} -domain shop -descriptors path=/orders,user=anna

Open http://localhost:${debug}/ in a browser for the active rules, statistics and profiles.

`);
}

void run({ ...settings, ...process.env }, printSuggestions).then((code) => process.exit(code));
