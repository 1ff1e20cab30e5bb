// What `npm start` runs: the built service with the example rules, which says what to try once it listens.
const { run } = require('../dist/main.js');

const say = (text) => process.stderr.write(`${text}\n`);

function suggest({ grpc, http, debug }) {
  say(`
weir is running: gRPC on port ${grpc}, HTTP on port ${http}, debug on port ${debug}. Counters live in this process.
The rules are in examples/config/; edit one while it runs, and it is reloaded. Ctrl+C ends it.

Try, in another terminal:

  curl -s -X POST http://localhost:${http}/json \\
    -d '{"domain": "shop", "descriptors": [{"entries": [{"key": "user", "value": "anna"}]}]}'

  node dist/cli/weir-client.js -dial_string localhost:${grpc} -domain shop -descriptors path=/orders,user=anna

  http://localhost:${debug}/   in a browser: the rules in force, the statistics, profiles
`);
}

void run(process.env, suggest).then((code) => process.exit(code));
