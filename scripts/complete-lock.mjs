// Adds to package-lock.json the optional packages of other platforms that the registry in use does not carry. npm
// leaves these out of the lock, and `npm ci` then rejects the lock on every machine. Run it after an install that
// changed the lock; the tests fail when it was not. The entries have no integrity: npm adds it where the package can be
// reached.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, printStatus } from './workspace.mjs';

const SYSTEMS = ['android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'];
/** Architectures as they are written in the names of packages, and as Node names them. */
const ARCHITECTURES = new Map([
  ...['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64'].map((it) => [
    it,
    it,
  ]),
  ['aarch64', 'arm64'],
  ['armv7', 'arm'],
]);

const file = join(ROOT, 'package-lock.json');
const lock = JSON.parse(readFileSync(file, 'utf8'));
const missing = missingPackages(lock.packages);
for (const { name, version, dependent } of missing) {
  const { cpu, libc, os } = platformOf(name);
  const { dev, license } = dependent;
  lock.packages[`node_modules/${name}`] = { version, cpu, dev, libc, license, optional: true, os };
}
lock.packages = Object.fromEntries(
  Object.entries(lock.packages).toSorted(([one], [other]) => one.localeCompare(other, 'en')),
);
writeFileSync(file, `${JSON.stringify(lock, undefined, 2)}\n`);
printStatus(`added ${missing.length} packages of other platforms to package-lock.json`);

/** The optional dependencies that no entry of the lock satisfies. Those here all have an exact version. */
function missingPackages(packages) {
  return Object.entries(packages).flatMap(([path, dependent]) =>
    Object.entries(dependent.optionalDependencies ?? {})
      .filter(([name]) => packages[`${path}/node_modules/${name}`] === undefined)
      .filter(([name]) => packages[`node_modules/${name}`] === undefined)
      .map(([name, version]) => ({ name, version, dependent })),
  );
}

/**
 * The fields of a lock entry that printStatus for which platform the package is, from its name:
 * `@swc/core-linux-arm64-gnu`.
 */
function platformOf(name) {
  const words = name.split(/[/-]/);
  const cpu = ARCHITECTURES.get(words.find((word) => ARCHITECTURES.has(word)));
  const os = words.find((word) => SYSTEMS.includes(word));
  if (cpu === undefined || os === undefined) {
    printStatus(`cannot derive the platform of ${name} from its name: add its entry to package-lock.json by hand`);
    process.exit(1);
  }
  const libc = words.some((word) => word.startsWith('musl')) ? 'musl' : 'glibc';
  const hasLibc = os === 'linux' && words.some((word) => /^(?:musl|gnu)/.test(word));
  return { cpu: [cpu], libc: hasLibc ? [libc] : undefined, os: [os] };
}
