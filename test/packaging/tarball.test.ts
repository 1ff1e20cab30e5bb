import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import packageFile from '../../package.json';

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
  bench: ['.json', '.md', '.svg'],
  deploy: ['.conf', '.md', '.service', '.socket'],
  dist: ['.d.ts', '.js'],
  docs: ['.md', '.svg'],
  examples: ['.env', '.json', '.md', '.mjs', '.yaml'],
  proto: ['.proto'],
  schema: ['.json'],
  src: ['.md'],
  test: ['.md'],
};

let folder: string;
let tarball: Tarball;
/** The unpacked package in the `node_modules` of an application. */
let installed: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'weir-packed-'));
  const options = ['--json', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder];
  const env = { ...process.env, npm_config_offline: 'true' };
  const { stdout } = await exec('npm', ['pack', ...options], { cwd: ROOT, env, maxBuffer: 1e7 });
  [tarball] = JSON.parse(stdout) as readonly [Tarball];
  installed = join(folder, 'node_modules', packageFile.name);
  await mkdir(installed, { recursive: true });
  await exec('tar', ['-xzf', join(folder, tarball.filename), '-C', installed, '--strip-components=1']);
  await mkdir(join(installed, 'node_modules'));
  for (const name of Object.keys(packageFile.dependencies)) {
    const link = join(installed, 'node_modules', name);
    await mkdir(join(link, '..'), { recursive: true });
    await symlink(join(ROOT, 'node_modules', name), link);
  }
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Where a file is and of which kind, as in {@link CONTENTS}. */
function placeOf(path: string): readonly [folder: string, kind: string] {
  const [top = '', ...rest] = path.split('/');
  const name = posix.basename(path);
  const kind = name.endsWith('.d.ts') ? '.d.ts' : posix.extname(name) || name;
  return [rest.length === 0 ? '' : top, kind];
}

/** Runs a program of Node in the application that has the package. */
async function node(...args: readonly string[]): Promise<string> {
  return (await exec(process.execPath, args, { cwd: folder })).stdout.trim();
}

describe('the tarball of npm pack', () => {
  it('holds the built program, its documentation and examples, and nothing else', () => {
    const unexpected = tarball.files.filter(({ path }) => {
      const [top, kind] = placeOf(path);
      return CONTENTS[top]?.includes(kind) !== true;
    });
    expect(unexpected.map(({ path }) => path)).toEqual([]);
    expect([...new Set(tarball.files.map(({ path }) => placeOf(path)[0]))].toSorted()).toEqual(Object.keys(CONTENTS));
    for (const path of ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'THIRD-PARTY-LICENCES.md'])
      expect(tarball.files.map((file) => file.path)).toContain(path);
  });

  it('has each module of src/ once, as code', () => {
    const modules = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !path.startsWith('gen/'))
      .map((path) => `dist/${path.replace(/\.ts$/, '.js')}`);
    const generated = /^dist\/gen\//;
    const packed = tarball.files
      .map(({ path }) => path)
      .filter((path) => path.endsWith('.js') && !generated.test(path));
    expect(packed.toSorted()).toEqual(modules.toSorted());
  });

  it('takes less than 1 MB, and less than 4 MB unpacked', () => {
    expect(tarball.size).toBeLessThan(1e6);
    expect(tarball.unpackedSize).toBeLessThan(4e6);
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
      "import { run } from 'weir-ratelimit'; import { api } from 'weir-ratelimit/versioning'; console.log(run.name, api.name)";
    expect(await node('--input-type=module', '-e', program)).toBe('run api');
    for (const { types } of [packageFile.exports['./versioning']])
      expect(existsSync(join(installed, types))).toBe(true);
    await expect(node('-e', "require('weir-ratelimit/dist/cli/flags.js')")).rejects.toThrow(
      'ERR_PACKAGE_PATH_NOT_EXPORTED',
    );
  });

  it('serves rules that are so many that a worker thread reads them', async () => {
    const rules = join(folder, 'rules/config');
    await mkdir(rules, { recursive: true });
    const keys = Array.from(
      { length: 2_000 },
      (_, at) => `  - {key: k${at}, rate_limit: {unit: hour, requests_per_unit: 1}}`,
    );
    await writeFile(join(rules, 'many.yaml'), `domain: many\ndescriptors:\n${keys.join('\n')}\n`);
    const env = {
      BACKEND_TYPE: 'memory',
      DISABLE_STATS: 'true',
      RUNTIME_ROOT: join(folder, 'rules'),
      HOST: '127.0.0.1',
      PORT: '0',
      GRPC_PORT: '0',
      DEBUG_PORT: '0',
      LOG_FORMAT: 'json',
    };
    const weir = spawn(join(installed, packageFile.bin.weir), [], {
      env: { ...env, PATH: process.env['PATH'] },
      stdio: 'pipe',
    });
    try {
      const address = await new Promise<string>((resolve, reject) => {
        const lines: string[] = [];
        createInterface(weir.stderr).on('line', (line) => {
          lines.push(line);
          const { '@message': message, http } = JSON.parse(line) as {
            readonly '@message': string;
            readonly http: string;
          };
          if (message === 'serving') resolve(http);
        });
        weir.once('exit', () => reject(new Error(`the service ended:\n${lines.join('\n')}`)));
      });
      const body = JSON.stringify({ domain: 'many', descriptors: [{ entries: [{ key: 'k1999', value: '' }] }] });
      const statuses = [];
      for (let call = 0; call < 2; call += 1) {
        statuses.push((await fetch(`http://${address}/json`, { method: 'POST', body })).status);
      }
      expect(statuses).toEqual([200, 429]);
    } finally {
      const ended = once(weir, 'close');
      weir.kill('SIGKILL');
      await ended;
    }
  });
});
