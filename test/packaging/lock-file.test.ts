import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface LockEntry {
  readonly version: string;
  readonly optional?: boolean;
  readonly cpu?: readonly string[];
  readonly os?: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

function read(file: string): unknown {
  return JSON.parse(readFileSync(join(__dirname, '../..', file), 'utf8'));
}

const packages = new Map(
  Object.entries((read('package-lock.json') as { packages: Record<string, LockEntry> }).packages),
);
const root = packages.get('') as LockEntry;
const optional = [...packages].flatMap(([path, { optionalDependencies = {} }]) =>
  Object.entries(optionalDependencies).map(([name, version]) => ({ path, name, version })),
);

describe('package-lock.json', () => {
  it('names the dependencies of package.json', () => {
    const { dependencies, devDependencies, optionalDependencies } = read('package.json') as LockEntry;
    expect([root.dependencies, root.devDependencies, root.optionalDependencies]).toEqual([
      dependencies,
      devDependencies,
      optionalDependencies,
    ]);
  });

  it('holds the packages of every platform, so that npm ci accepts it everywhere (else: node scripts/complete-lock.mjs)', () => {
    const missing = optional.filter(
      ({ path, name }) => !packages.has(`${path}/node_modules/${name}`) && !packages.has(`node_modules/${name}`),
    );
    expect(missing).toEqual([]);
    expect(optional.length).toBeGreaterThan(50);
  });

  it.each(['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'])(
    'has what the build needs on %s, in the version that its package requires',
    (platform) => {
      const [os, cpu] = platform.split('-') as [string, string];
      for (const parent of ['@bufbuild/buf', 'typescript']) {
        const here = optional
          .filter(({ path }) => path === `node_modules/${parent}`)
          .map(({ name, version }) => ({ entry: packages.get(`node_modules/${name}`), version }))
          .filter(({ entry }) => entry?.os?.includes(os) && entry.cpu?.includes(cpu));
        expect(here.map(({ entry }) => entry?.version)).toEqual(here.map(({ version }) => version));
        expect(here).not.toEqual([]);
      }
    },
  );
});
