// Runs the built service with the example rules and, once it listens, prints what to try: npm start.
const { run } = require('../dist/main.js');

function printSuggestions({ grpc, http, debug }) {
  process.stderr.write(`
weir is running: gRPC on port ${grpc}, HTTP on port ${http}, debug on port ${debug}.
Counters are stored in this process. The rules are in examples/config/ and are reloaded when a file changes.
Press Ctrl+C to stop.

Try it in another terminal:

  curl -s -X POST http://localhost:${http}/json \\
    -d '{"domain": "shop", "descriptors": [{"entries": [{"key": "user", "value": "anna"}]}]}'

  node dist/cli/weir-client.js -dial_string localhost:${grpc} -domain shop -descriptors path=/orders,user=anna

Open http://localhost:${debug}/ in a browser for the active rules, statistics and profiles.

`);
}

void run(process.env, printSuggestions).then((code) => process.exit(code));
