// Writes the code that V8 compiles for dist/main.bundle.js until the service serves, for the version of Node that runs
// this: src/launch.ts loads the bundle with it.
const { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const path = require('node:path');
const { setFlagsFromString } = require('node:v8');
const { Script } = require('node:vm');

const DIST = path.join(__dirname, '../dist');
const { CACHE_NAME, digestOf } = require(path.join(DIST, 'code-cache.js'));
const filename = path.join(DIST, 'main.bundle.js');
const source = readFileSync(filename);
const script = new Script(source.toString('latin1'), { filename });
const bundle = { exports: {} };
script.runInThisContext()(bundle.exports, require, bundle, path.join(DIST, 'main.js'), DIST);

const rules = mkdtempSync(path.join(tmpdir(), 'weir-build-'));
process.once('exit', () => rmSync(rules, { recursive: true }));
mkdirSync(path.join(rules, 'config'));
const rule = '{ key: user, rate_limit: { unit: minute, requests_per_unit: 10 } }';
writeFileSync(path.join(rules, 'config/rules.yaml'), `domain: shop\ndescriptors:\n  - ${rule}\n`);

/** Milliseconds after which a build fails whose service does not serve. */
const TIMEOUT = 60_000;
setTimeout(() => process.exit(1), TIMEOUT).unref();

const settings = {
  RUNTIME_ROOT: rules,
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
  const code = script.createCachedData();
  writeFileSync(path.join(DIST, CACHE_NAME), Buffer.concat([code, digestOf(code, source)]));
  process.exit();
}
bundle.exports.run(settings, write).then((code) => process.exit(code || 1));
