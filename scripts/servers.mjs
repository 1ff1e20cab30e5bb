// Gets the real servers that the tests talk to into place. A missing server is never a skipped test: either it is
// installed here, or the run ends with the sentence that says what to install.
import { spawnSync } from 'node:child_process';
import { run, say } from './workspace.mjs';

/** Programs that the tests start, and the Debian package that brings each. */
const DEBIAN = [];

const exists = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const mayInstall = () => process.getuid?.() === 0 && exists('apt-get');

/** Installs what is missing, or ends the process saying what to install. */
export function provideServers() {
  const missing = DEBIAN.filter(({ program }) => !exists(program)).map(({ debian }) => debian);
  if (missing.length === 0) return;
  if (!mayInstall()) {
    say(`the tests talk to real servers that are not here; install them with: sudo apt-get install ${missing.join(' ')}`);
    process.exit(1);
  }
  say(`installing what the tests talk to: ${missing.join(', ')}`);
  // Debian starts a server it installs; the tests start their own, on free ports.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  run('apt-get', ['update', '-qq'], env);
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...missing], env);
}
