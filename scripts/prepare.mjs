// Brings a checkout into a state in which it runs: dependencies installed, dist/ built; with --servers also the real
// servers that the tests talk to. Does only what is stale, and says what it does. Needs nothing but Node.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUILD_STAMP, ROOT, isStale, run, say } from './workspace.mjs';

const SUPPORTED_NODE = 20;
if (Number(process.versions.node.split('.')[0]) < SUPPORTED_NODE) {
  say(`needs Node ${SUPPORTED_NODE} or newer, this is ${process.version}`);
  process.exit(1);
}

// npm's own mark is not touched when everything was there already.
const installStamp = join(ROOT, 'node_modules/.installed');
if (isStale(installStamp, ['package.json', 'package-lock.json'])) {
  say('installing dependencies (npm install)');
  run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error']);
  writeFileSync(installStamp, '');
}

const buildSources = ['src', 'proto', 'buf.yaml', 'buf.gen.yaml', 'tsconfig.json', 'package.json'];
// The folder src itself is touched when src/gen is made anew, which is no change of the sources.
if (isStale(BUILD_STAMP, buildSources, ['src/gen'])) {
  run(process.execPath, ['scripts/build.mjs']);
}

if (process.argv.includes('--servers')) {
  const { provideServers } = await import('./servers.mjs');
  provideServers();
}
