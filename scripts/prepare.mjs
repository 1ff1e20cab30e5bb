// Prepares a checkout: installs the dependencies and builds dist/; with --servers also installs the servers that the
// tests use, with --helm the library of Helm; with --ports ends first if a port of the service is in use. Skips what is
// up to date, and prints what it does. Needs only Node.
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { BUILD_STAMP, CONSOLE_PAGES, ROOT, isStale, run, printStatus, timed } from './workspace.mjs';

const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const oldestNode = engines.node.replace('>=', '');
if (process.versions.node.localeCompare(oldestNode, 'en', { numeric: true }) < 0) {
  printStatus(`Node ${oldestNode} or newer is required; this is ${process.version}`);
  process.exit(1);
}

/** The settings of the listeners of `npm start`, with their defaults. */
const LISTENERS = [
  ['HOST', undefined, 'PORT', 8080],
  ['GRPC_HOST', undefined, 'GRPC_PORT', 8081],
  ['DEBUG_HOST', '127.0.0.1', 'DEBUG_PORT', 6070],
];

/** Whether another process listens there. Of other problems the service says what to do. */
async function isBusy(host, port) {
  const server = createServer();
  try {
    await once(server.listen({ host, port }), 'listening');
    return false;
  } catch (error) {
    return error.code === 'EADDRINUSE';
  } finally {
    server.close();
  }
}

if (process.argv.includes('--ports')) {
  const { env } = process;
  for (const [hostName, defaultHost, name, defaultPort] of LISTENERS) {
    const port = env[name] || defaultPort;
    if (name === 'GRPC_PORT' && env.GRPC_UDS) continue;
    if (!(await isBusy(env[hostName] || defaultHost, port))) continue;
    printStatus(`another process is already listening on port ${port}: end it, or set ${name} to another port`);
    process.exitCode = 1;
  }
  if (process.exitCode === 1) process.exit();
}

// npm does not update its own marker file if everything is installed already; `npm ci` writes no other.
const installStamp = join(ROOT, 'node_modules/.installed');
const npmStamp = join(ROOT, 'node_modules/.package-lock.json');
const declared = ['package.json', 'packages/versioning/package.json', 'package-lock.json'];
if (isStale(installStamp, declared) && isStale(npmStamp, declared)) {
  printStatus('installing dependencies (npm install)');
  timed('installing', () => run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error']));
  writeFileSync(installStamp, '');
}

const buildSources = [
  'src',
  'console',
  'packages',
  'proto',
  'buf.yaml',
  'buf.gen.yaml',
  'tsconfig.json',
  'package.json',
  ...CONSOLE_PAGES,
  'docs/rule-errors.md',
];
// What is generated, built or installed is no change of the sources.
const generated = ['src/gen', 'packages/versioning/dist', 'packages/versioning/node_modules'];
if (isStale(BUILD_STAMP, buildSources, generated)) {
  timed('building', () => run(process.execPath, ['scripts/build.mjs']));
}

if (process.argv.includes('--servers')) {
  const { installServers } = await import('./servers.mjs');
  timed('checking the servers that the tests need', installServers);
}
if (process.argv.includes('--helm')) {
  const { installHelm } = await import('./servers.mjs');
  installHelm();
}
