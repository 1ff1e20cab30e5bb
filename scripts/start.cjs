// Run by `npm start`: the built service with the example rules. Prints commands to try when the listeners are open.
const { run } = require('../dist/main.js');

function suggest({ grpc, http, debug }) {
  process.stderr.write(`
weir is running: gRPC on port ${grpc}, HTTP on port ${http}, debug on port ${debug}.
By default, counters are in memory, and the rules in examples/config/ are reloaded when a file changes. Ctrl+C stops weir.

Try, in another terminal:

  curl -s -X POST http://localhost:${http}/json \\
    -d '{"domain": "shop", "descriptors": [{"entries": [{"key": "user", "value": "anna"}]}]}'

  node dist/cli/weir-client.js -dial_string localhost:${grpc} -domain shop -descriptors path=/orders,user=anna

  http://localhost:${debug}/   in a browser: the active rules, statistics, profiles

`);
}

void run(process.env, suggest).then((code) => process.exit(code));
