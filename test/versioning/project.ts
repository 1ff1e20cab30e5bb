import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdir, readFile, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TemporaryFolder } from '../support/data/temporary-folder';

const ROOT = join(__dirname, '../..');

/** Serves the resources of a list in versions 1 to n, and prints the port, or the error of the declaration. */
const APP = `const { Router } = require('@koa/router');
const Koa = require('koa');
const { api } = require('koa-route-versions');
const router = new Router();
const [versions, names] = process.argv.slice(2);
try {
  api(router, { vendorString: 'bookshop', controllers: 'controllers' }, (api) => {
    for (let version = 1; version <= Number(versions); version += 1) {
      api.version(version, () => names.split(',').forEach((name) => api.resources(name, { only: ['index', 'show'] })));
    }
  });
  const server = new Koa().use(router.routes()).listen(0, '127.0.0.1', () => console.log(server.address().port));
} catch (error) {
  console.log(error.name + ': ' + error.message.replace(process.cwd(), ''));
}
`;

/** A project of its own, which has koa-route-versions installed, with controllers for it. */
export class Project implements AsyncDisposable {
  readonly #children: ChildProcess[] = [];

  readonly #own = new TemporaryFolder();
  readonly folder = this.#own.base;

  /** @param files by their paths below `controllers/api/`: their text, or true to copy them from examples/versioning */
  static async with(files: Readonly<Record<string, string | true>>): Promise<Project> {
    const project = new Project();
    const { folder } = project;
    for (const [path, text] of Object.entries(files)) {
      const to = join('controllers/api', path);
      project.#own.write(to, text === true ? await readFile(join(ROOT, 'examples/versioning', to), 'utf8') : text);
    }
    await mkdir(join(folder, 'node_modules/@koa'), { recursive: true });
    for (const name of ['koa', '@koa/router', 'koa-route-versions']) {
      await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
    }
    project.#own.write('app.cjs', APP);
    return project;
  }

  /** Runs the program weir-bump. */
  async bump(): Promise<void> {
    await promisify(execFile)(process.execPath, [join(ROOT, 'packages/versioning/dist/bump/weir-bump.js')], {
      cwd: this.folder,
    });
  }

  /** The paths of all controllers. */
  async controllers(): Promise<readonly string[]> {
    const entries = await readdir(join(this.folder, 'controllers/api'), { recursive: true });
    return entries.filter((path) => path.includes('controller.')).toSorted();
  }

  /** Starts the application, and returns the line that it prints: its port or an error. */
  async start(versions: number, names: string, ...flags: readonly string[]): Promise<string> {
    const child = spawn(process.execPath, [...flags, 'app.cjs', String(versions), names], {
      cwd: this.folder,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#children.push(child);
    let output = '';
    for await (const chunk of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      output += String(chunk);
      if (output.endsWith('\n')) break;
    }
    return output.trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) child.kill();
    this.#own[Symbol.dispose]();
  }
}
