import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { promisify } from 'node:util';
import packageFile from '../../package.json';
import lock from '../../package-lock.json';
import { markdownFiles, relativeLinks } from '../docs/markdown-files';
import { RuleFolder } from '../support/data/rule-folder';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { WeirProcess } from '../support/processes/weir-process';
import { readSettings } from '../../src/settings/read-settings';
import { settingsTable } from '../../src/settings/table/settings-table';
import { readServiceManager } from '../../src/settings/service-manager';

const ROOT = join(__dirname, '../..');
const exec = promisify(execFile);

/** What npm says about a tarball. */
interface Tarball {
  readonly filename: string;
  /** Of the tarball, in bytes. */
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string; readonly mode: number }[];
}

/** The kinds of files in each folder of the tarball; `''` is the root. */
const CONTENTS: Readonly<Record<string, readonly string[]>> = {
  '': ['.json', '.md', 'LICENSE'],
  bench: ['.json', '.md'],
  deploy: ['.conf', '.md', '.service', '.socket'],
  // The pages that the console links to.
  dist: ['.css', '.html', '.js', '.md', '.svg'],
  docs: ['.md'],
  examples: ['.env', '.json', '.md', '.mjs', '.yaml'],
  packages: ['.d.ts', '.js', '.json', '.md'],
  proto: ['.proto'],
  schema: ['.json'],
  src: ['.md'],
  test: ['.md'],
};

const application = new TemporaryFolder();
let tarball: Tarball;
/** The unpacked package in the `node_modules` of an application. */
let installed: string;

beforeAll(async () => {
  const options = ['--json', '--ignore-scripts', '--loglevel=error', '--pack-destination', application.base];
  const env = { ...process.env, npm_config_offline: 'true' };
  const { stdout } = await exec('npm', ['pack', ...options], { cwd: ROOT, env, maxBuffer: 1e7 });
  [tarball] = JSON.parse(stdout) as readonly [Tarball];
  installed = application.at(`node_modules/${packageFile.name}`);
  await mkdir(installed, { recursive: true });
  await exec('tar', ['-xzf', application.at(tarball.filename), '-C', installed, '--strip-components=1']);
  await mkdir(join(installed, 'node_modules'));
  for (const name of Object.keys(packageFile.dependencies)) {
    const link = join(installed, 'node_modules', name);
    await mkdir(join(link, '..'), { recursive: true });
    await symlink(join(ROOT, 'node_modules', name), link);
  }
});
afterAll(() => application[Symbol.dispose]());

/** Where a file is and of which kind, as in {@link CONTENTS}. */
function placeOf(path: string): readonly [folder: string, kind: string] {
  const [top = '', ...rest] = path.split('/');
  const name = posix.basename(path);
  const kind = name.endsWith('.d.ts') ? '.d.ts' : posix.extname(name) || name;
  return [rest.length === 0 ? '' : top, kind];
}

/** Runs a program of Node in the application that has the package. */
async function node(...args: readonly string[]): Promise<string> {
  return (await exec(process.execPath, args, { cwd: application.base })).stdout.trim();
}

describe('the tarball of npm pack', () => {
  it('holds the built program, its documentation and examples, and nothing else', () => {
    const unexpected = tarball.files.filter(({ path }) => {
      const [top, kind] = placeOf(path);
      return CONTENTS[top]?.includes(kind) !== true;
    });
    expect(unexpected.map(({ path }) => path)).toEqual([]);
    expect([...new Set(tarball.files.map(({ path }) => placeOf(path)[0]))].toSorted()).toEqual(Object.keys(CONTENTS));
    for (const path of [
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'THIRD-PARTY-LICENCES.md',
      'schema/operators-api.json',
      'dist/console/index.html',
      'dist/console/main.js',
    ])
      expect(tarball.files.map((file) => file.path)).toContain(path);
  });

  it('has each module of src/ and packages/ once, as code', () => {
    const modules = ['', 'packages/versioning/'].flatMap((folder) =>
      readdirSync(join(ROOT, folder, 'src'), { recursive: true, encoding: 'utf8' })
        .filter((path) => path.endsWith('.ts') && !path.startsWith('gen/'))
        .map((path) => `${folder}dist/${path.replace(/\.ts$/, '.js')}`),
    );
    const generated = /^dist\/(?:gen|console)\//;
    const packed = tarball.files
      .map(({ path }) => path)
      .filter((path) => path.endsWith('.js') && !generated.test(path));
    // The program is its bundle, which launch.ts loads in the place of main.ts.
    const expected = [...modules.filter((path) => path !== 'dist/launch.js'), 'dist/main.bundle.js'];
    expect(packed.toSorted()).toEqual(expected.toSorted());
  });

  it('holds what its pages link to', () => {
    const packed = tarball.files.map(({ path }) => path);
    const links = markdownFiles()
      .filter((file) => packed.includes(file))
      .flatMap(relativeLinks);
    const missing = links.filter(
      ({ path }) => !packed.some((file) => file === path || file.startsWith(`${path.replace(/\/$/, '')}/`)),
    );

    expect(links.length).toBeGreaterThan(50);
    expect(missing.map(({ from, target }) => `${from}: ${target}`)).toEqual([]);
  });

  it('takes less than 1.9 MB, and less than 7.5 MB unpacked', () => {
    expect(tarball.size).toBeLessThan(1.9e6);
    expect(tarball.unpackedSize).toBeLessThan(7.5e6);
  });

  it('has executable programs that say their version', async () => {
    for (const [name, path] of Object.entries(packageFile.bin)) {
      expect(tarball.files.find((file) => file.path === path)?.mode).toBe(0o755);
      const { stdout } = await exec(join(installed, path), ['--version']);
      expect(stdout).toBe(`${name} ${packageFile.version}\n`);
    }
  });
});

describe('the installed package', () => {
  it('serves both entries, with require and with import', async () => {
    expect(await node('-p', "typeof require('weir-ratelimit').run")).toBe('function');
    expect(await node('-p', "Object.keys(require('weir-ratelimit/versioning')).sort().join()")).toBe(
      'DeclarationError,api',
    );
    const program =
      "import { run } from 'weir-ratelimit'; import { api } from 'weir-ratelimit/versioning'; " +
      'console.log(typeof run, typeof api)';
    expect(await node('--input-type=module', '-e', program)).toBe('function function');
    expect(existsSync(join(installed, packageFile.exports['./versioning'].types))).toBe(true);
    await expect(node('-e', "require('weir-ratelimit/dist/cli/flags.js')")).rejects.toThrow(
      'ERR_PACKAGE_PATH_NOT_EXPORTED',
    );
  });

  it('serves rules that are so many that a worker thread reads them', async () => {
    const keys = Array.from(
      { length: 2_000 },
      (_, at) => `  - {key: k${at}, rate_limit: {unit: hour, requests_per_unit: 1}}`,
    );
    await using rules = await RuleFolder.with({ 'many.yaml': `domain: many\ndescriptors:\n${keys.join('\n')}\n` });
    await using weir = await WeirProcess.start({ env: rules.env, dist: join(installed, 'dist') });
    const body = JSON.stringify({ domain: 'many', descriptors: [{ entries: [{ key: 'k1999', value: '' }] }] });
    const statuses = [];
    for (let call = 0; call < 2; call += 1) statuses.push((await weir.http('/json', { method: 'POST', body })).status);
    expect(statuses).toEqual([200, 429]);
  });
});

/** An application of Koa in TypeScript, as ES module and as CommonJS. */
const APPLICATION = `import Router from '@koa/router';
import type { Context } from 'koa';
import { api, type Api, type ApiOptions, type DeclaredRoute } from 'koa-route-versions';
class Foo {
  index(): string { return ''; }
  show(ctx: { params: { id: string } }): string { return ctx.params.id; }
  destroy(ctx: Context): void { ctx.body = ''; }
}
const options: ApiOptions = { vendorString: 'acme', controllers: () => Foo, updateMethods: ['PUT', 'PATCH'] };
const routes: readonly DeclaredRoute[] = api(new Router(), options, (it: Api) => it.version(1, () => {
  it.resources('foo', { only: 'index' }, () => it.resources('bar', { only: ['index', 'show'], shallow: true }));
  // @ts-expect-error -- there is no such action
  it.resources('foo', { only: 'list' });
}));
export { routes };
`;

/** The oldest and the newest supported versions, and what has their types. */
const PEERS = [
  ['koa@2.16.0', '@koa/router@12.0.2', '@types/koa@2.15.0', '@types/koa__router@12.0.5'],
  ['koa@3.3.0', '@koa/router@15.7.0', '@types/koa@3.0.3'],
] as const;

/** The size of all files in a folder, in bytes. */
function sizeOf(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.reduce(
    (sum, entry) => sum + (entry.isFile() ? statSync(join(entry.parentPath, entry.name)).size : 0),
    0,
  );
}

describe('the tarball of koa-route-versions', () => {
  let packed: Tarball;
  beforeAll(async () => {
    const options = ['--json', '--loglevel=error', '--pack-destination', application.base];
    const { stdout } = await exec('npm', ['pack', '-w', 'koa-route-versions', '--ignore-scripts', ...options], {
      cwd: ROOT,
    });
    [packed] = JSON.parse(stdout) as readonly [Tarball];
  });

  it('holds code, types, the licence and the README, and nothing else', () => {
    const others = packed.files.filter(({ path }) => !/^dist\/.*\.(?:js|d\.ts)$/.test(path)).map(({ path }) => path);
    expect(others.toSorted()).toEqual(['LICENSE', 'README.md', 'package.json']);
  });

  it.each(PEERS)(
    'works in an empty project with %s and %s, and adds less than 0.5 MB',
    async (koa, router, ...types) => {
      using project = new TemporaryFolder();
      function run(command: string, ...args: readonly string[]) {
        return exec(command, args, { cwd: project.base });
      }
      function install(...names: readonly string[]) {
        return run('npm', 'install', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error', ...names);
      }
      project.write('package.json', '{"private":true}');
      await install(koa, router);
      const before = sizeOf(project.at('node_modules'));
      await install(application.at(packed.filename));
      expect(sizeOf(project.at('node_modules')) - before).toBeLessThan(500_000);

      await install('--save-dev', ...types.filter((name) => name !== undefined));
      const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2023', '--esModuleInterop'];
      const files = ['cts', 'mts'].map((extension) => project.write(`app.${extension}`, APPLICATION));
      const checked = await run(
        join(ROOT, 'node_modules/.bin/tsc'),
        ...flags,
        '--skipLibCheck',
        'false',
        ...files,
      ).catch((error: { stdout: string }) => error);
      expect(checked.stdout).toBe('');

      project.write(
        'controllers/api/v1/foo-controller.mjs',
        "export default class Foo { index() { return 'answer'; } }",
      );
      expect((await run('npx', 'weir-bump')).stdout).toContain('created controllers/api/v2/foo-controller.mjs');
      const program = `import Router from '@koa/router';
import Koa from 'koa';
import { api } from 'koa-route-versions';
const router = new Router();
api(router, { vendorString: 'acme', controllers: 'controllers', defaultVersion: 2 }, (it) => {
  for (const n of [1, 2]) it.version(n, () => it.resources('foo', { only: 'index' }));
});
const server = new Koa().use(router.routes()).listen(0, '127.0.0.1', async () => {
  const headers = { Accept: 'text/html;q=0.9, application/vnd.acme+json;version=2' };
  console.log(await (await fetch('http://127.0.0.1:' + server.address().port + '/api/foo', { headers })).text());
  process.exit();
});`;
      expect((await run(process.execPath, '--input-type=module', '-e', program)).stdout).toBe('answer\n');
    },
  );
});

describe('examples/versioning', () => {
  it('answers what its comment shows', async () => {
    const file = join(ROOT, 'examples/versioning/app.mjs');
    const child = spawn(process.execPath, [file], {
      env: { ...process.env, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const [line] = (await once(child.stdout, 'data')) as [Buffer];
      const port = /port (\d+)/.exec(line.toString())![1]!;
      const shown = [...readFileSync(file, 'utf8').matchAll(/curl -i localhost:3000(\S+)(?: -H 'Accept: (.+)')?/g)];
      const answers = shown.map(async ([, path, accept]) => {
        const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { Accept: accept ?? '*/*' } });
        return [answer.headers.get('content-type'), await answer.json()];
      });
      expect(await Promise.all(answers)).toEqual([
        ['application/vnd.bookshop+json; version=1', { id: '1', title: 'The Left Hand of Darkness' }],
        ['application/vnd.bookshop+json; version=2', { book: { id: '1', title: 'The Left Hand of Darkness' } }],
        ['application/vnd.bookshop+json; version=2', [{ name: 'sales' }]],
      ]);
    } finally {
      child.kill();
    }
  });
});

interface Component {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly scope: 'required' | 'optional';
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly object[];
}
interface Bill {
  readonly bomFormat: string;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** Runs a script of the project. */
async function script(name: string, ...args: readonly string[]) {
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [join(ROOT, 'scripts', name), ...args]);
    return { code: 0, stdout, stderr };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

/** Checks the licences of the project's lock, with further or other packages. */
async function checkLicences(packages: Readonly<Record<string, object>>) {
  using folder = new TemporaryFolder();
  const text = JSON.stringify({ ...lock, packages: { ...lock.packages, ...packages } });
  return await script('licences.mjs', '--check', '--lock', folder.write('package-lock.json', text));
}

describe('scripts/sbom.mjs', () => {
  it('lists what an installation contains, each package with its licence, its hash and what it depends on', async () => {
    const { code, stdout } = await script('sbom.mjs');
    const bill = JSON.parse(stdout) as Bill;
    const references = new Set([bill.metadata.component, ...bill.components].map((component) => component['bom-ref']));

    expect([code, bill.bomFormat, bill.metadata.component.name]).toEqual([0, 'CycloneDX', packageFile.name]);
    expect(bill.components.map(({ name }) => name)).toEqual(
      expect.arrayContaining(Object.keys({ ...packageFile.dependencies, ...packageFile.optionalDependencies })),
    );
    // The console contains preact.
    const development = bill.components.map(({ name }) => name).filter((name) => name in packageFile.devDependencies);
    expect(development.toSorted()).toEqual(['@types/node', 'preact']);
    expect(bill.components.filter(({ licenses = [] }) => licenses.length === 0)).toEqual([]);
    // The registry in use may not carry the packages of other platforms.
    expect(bill.components.filter(({ scope, hashes }) => scope === 'required' && hashes === undefined)).toEqual([]);
    expect(new Set(bill.dependencies.map(({ ref }) => ref))).toEqual(references);
    expect(bill.dependencies.flatMap(({ dependsOn }) => dependsOn).filter((ref) => !references.has(ref))).toEqual([]);
    const { integrity, version } = lock.packages['node_modules/@grpc/grpc-js'];
    expect(bill.components.find(({ name }) => name === '@grpc/grpc-js')).toMatchObject({
      purl: `pkg:npm/%40grpc/grpc-js@${version}`,
      licenses: [{ license: { id: 'Apache-2.0' } }],
      hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex') }],
    });
  });
});

describe('scripts/licences.mjs', () => {
  it('finds THIRD-PARTY-LICENCES.md up to date and every licence allowed', async () => {
    expect(await script('licences.mjs', '--check')).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it.each([
    [
      'a licence that is not allowed',
      { license: 'GPL-3.0-only' },
      'left-pad 1.0.0: the licence GPL-3.0-only is not in the list',
    ],
    ['no licence', {}, 'left-pad 1.0.0: the licence (none given) is not in the list'],
    [
      'one that is not allowed among several that all apply',
      { license: '(MIT AND GPL-3.0-only)' },
      'GPL-3.0-only) is not in',
    ],
    ['a package that the page does not have', { license: 'MIT' }, 'THIRD-PARTY-LICENCES.md is not up to date'],
  ])('fails for %s', async (_, entry, message) => {
    const { code, stderr } = await checkLicences({ 'node_modules/left-pad': { version: '1.0.0', ...entry } });

    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  });
});

const UNITS = join(ROOT, 'deploy/systemd');
/** Tenths: the highest exposure that is accepted. */
const THRESHOLD = 20;

const service = readFileSync(join(UNITS, 'weir.service'), 'utf8');
const names = readdirSync(UNITS).filter((name) => /\.(?:service|socket)$/.test(name));

/** Runs `systemd-analyze` on a copy of the units, in which Node is where it is on this machine. */
function analyze(args: readonly string[], edit: (unit: string) => string = (unit) => unit) {
  using folder = new TemporaryFolder();
  cpSync(UNITS, folder.base, { recursive: true });
  folder.write('weir.service', edit(service).replace('/usr/bin/node', process.execPath));
  const command = args.map((arg) => (names.includes(arg) ? folder.at(arg) : arg));
  // Plain output, and nothing of the settings of the machine.
  const env = { PATH: process.env['PATH'], SYSTEMD_COLORS: '0', SYSTEMD_LOG_LEVEL: 'warning' };
  const { status, stdout, stderr, error } = spawnSync('systemd-analyze', command, { encoding: 'utf8', env });
  if (error !== undefined) throw error;
  return { status, stdout, output: stdout + stderr };
}

function valuesOf(text: string, key: string): readonly string[] {
  return Array.from(text.matchAll(new RegExp(`^${key}=(.*)$`, 'gm')), ([, value]) => value!);
}

/** Assignments of `Environment=`, without the folder of credentials, which systemd fills in. */
function environmentOf(text: string): Readonly<Record<string, string>> {
  const assignments = valuesOf(text, 'Environment').flatMap((value) => value.split(' '));
  return Object.fromEntries(assignments.map((text_) => [text_.split('=')[0]!, text_.slice(text_.indexOf('=') + 1)]));
}

describe('the units of deploy/systemd', () => {
  it('are valid with the drop-ins: systemd-analyze verify prints nothing', () => {
    expect(analyze(['verify', '--man=no', ...names])).toEqual({ status: 0, stdout: '', output: '' });
  });

  it('limit what the service can do: its exposure level is low', () => {
    const args = ['security', '--offline=true', `--threshold=${THRESHOLD}`, 'weir.service'];
    const { status, output } = analyze(args);
    expect(status).toBe(0);
    expect(output).toContain('Overall exposure level for weir.service: 1.');
    expect(analyze(args, (unit) => unit.replace(/^(?:Protect|Private|Restrict|System).*\n/gm, '')).status).not.toBe(0);
  });

  it('give settings that weir knows and accepts', () => {
    const environment = environmentOf(service);
    expect(Object.keys(environment).length).toBeGreaterThan(3);
    expect(readSettings(environment).settings).toMatchObject({
      runtimeRoot: '/etc/weir',
      runtimeAppdirectory: 'config',
      debugHost: '127.0.0.1',
    });
    const known = new Set(settingsTable.flatMap(({ settings }) => settings.map(({ name }) => name)));
    expect(Object.keys(environment).filter((name) => !known.has(name))).toEqual([]);
  });

  it('pass each credential to the setting of a secret', () => {
    const secrets = readFileSync(join(UNITS, 'weir.service.d/secrets.conf'), 'utf8');
    const loaded = valuesOf(secrets, 'LoadCredential').map((value) => `%d/${value.split(':')[0]}`);
    const environment = environmentOf(secrets);
    expect(Object.values(environment)).toEqual(loaded);
    const secretNames = settingsTable.flatMap(({ settings }) =>
      settings.filter(({ type }) => type.secret !== undefined).map(({ name }) => `${name}_FILE`),
    );
    expect(secretNames).toEqual(expect.arrayContaining(Object.keys(environment)));
  });

  it('open a socket for gRPC, in the folder of the service, to a group that cannot be the one of its dynamic user', () => {
    const dropIn = readFileSync(join(UNITS, 'weir.service.d/grpc-socket.conf'), 'utf8');
    const [folder] = valuesOf(service, 'RuntimeDirectory');
    expect(readSettings(environmentOf(dropIn)).settings.grpcUds).toMatch(new RegExp(`^/run/${folder}/[^/]+$`));
    expect(valuesOf(service, 'DynamicUser')).toEqual(['yes']);
    expect(valuesOf(dropIn, 'Group')).not.toEqual(['weir']);
  });

  it('name each socket after a listener, at its default port', () => {
    const { settings } = readSettings({});
    const ports = { grpc: settings.grpcPort, http: settings.port, debug: settings.debugPort };
    const sockets = names
      .filter((name) => name.endsWith('.socket'))
      .map((name) => {
        const unit = readFileSync(join(UNITS, name), 'utf8');
        const [descriptor] = valuesOf(unit, 'FileDescriptorName');
        return [descriptor, Number(/(\d+)$/.exec(valuesOf(unit, 'ListenStream')[0]!)?.[1])] as const;
      });
    expect(Object.fromEntries(sockets)).toEqual(ports);
    const passed = { LISTEN_PID: '1', LISTEN_FDS: '3', LISTEN_FDNAMES: sockets.map(([name]) => name).join(':') };
    const problems: string[] = [];
    readServiceManager(passed, 1, problems);
    expect(problems).toEqual([]);
  });
});
