// Writes the code that V8 compiles for dist/main.bundle.js until the service serves, for the version of Node that runs this: src/launch.ts
// loads the bundle with it.
const { readFileSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const { setFlagsFromString } = require('node:v8');
const { Script } = require('node:vm');

const DIST = path.join(__dirname, '../dist');
const filename = path.join(DIST, 'main.bundle.js');
const script = new Script(readFileSync(filename, 'latin1'), { filename });
const bundle = { exports: {} };
script.runInThisContext()(bundle.exports, require, bundle, path.join(DIST, 'main.js'), DIST);

const settings = {
  RUNTIME_ROOT: path.join(__dirname, '../examples'),
  RUNTIME_WATCH_ROOT: 'false',
  BACKEND_TYPE: 'memory',
  DISABLE_STATS: 'true',
  LOG_LEVEL: 'error',
  HOST: '127.0.0.1',
  PORT: '0',
  GRPC_HOST: '127.0.0.1',
  GRPC_PORT: '0',
  DEBUG_HOST: '127.0.0.1',
  DEBUG_PORT: '0',
};
function write() {
  // The service has changed this flag, and V8 rejects code that was compiled with other flags than those at the start.
  setFlagsFromString('--parallel-scavenge');
  const cache = path.join(DIST, `main.bundle.${process.version}-${process.arch}.cache`);
  writeFileSync(cache, script.createCachedData());
  process.exit();
}
bundle.exports.run(settings, write).then((code) => process.exit(code || 1));
