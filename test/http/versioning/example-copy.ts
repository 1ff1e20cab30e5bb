import { execFile, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(__dirname, '../../..');
const BUMP = join(ROOT, 'dist/cli/weir-bump.js');

const APP = `import Router from '@koa/router';
import Koa from 'koa';
import { api } from 'weir-ratelimit/versioning';

const router = new Router();
api(router, { vendorString: 'bookshop', controllers: new URL('controllers', import.meta.url) }, (api) => {
  for (let version = 1; version <= Number(process.argv[2]); version += 1) {
    api.version(version, () => api.resources('books', { only: ['index', 'show', 'create'] }));
  }
});
const server = new Koa().use(router.routes()).listen(0, '127.0.0.1', () => console.log(server.address().port));
`;

/** A project of its own with version 1 of the books of examples/versioning, which has weir installed as a package. */
export class ExampleCopy implements AsyncDisposable {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async make(): Promise<ExampleCopy> {
    const folder = await mkdtemp(join(tmpdir(), 'weir-versioning-'));
    const source = 'controllers/api/v1/books-controller.mjs';
    await cp(join(ROOT, 'examples/versioning', source), join(folder, source));
    await mkdir(join(folder, 'node_modules/@koa'), { recursive: true });
    await symlink(ROOT, join(folder, 'node_modules/weir-ratelimit'));
    for (const name of ['koa', '@koa/router']) {
      await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
    }
    await writeFile(join(folder, 'app.mjs'), APP);
    return new ExampleCopy(folder);
  }

  /** Runs weir-bump in the project. */
  async bump(): Promise<string> {
    const { stdout } = await promisify(execFile)(process.execPath, [BUMP], { cwd: this.#folder });
    return stdout;
  }

  /** The paths of all controllers. */
  async files(): Promise<readonly string[]> {
    const entries = await readdir(join(this.#folder, 'controllers'), { recursive: true });
    return entries.filter((path) => path.endsWith('.mjs')).toSorted();
  }

  /** Starts the application with these versions. */
  async start(versions: number): Promise<ExampleApp> {
    const child = spawn(process.execPath, ['app.mjs', String(versions)], {
      cwd: this.#folder,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    for await (const chunk of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      output += String(chunk);
      if (output.endsWith('\n')) break;
    }
    return new ExampleApp(Number(output), () => child.kill());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }
}

export interface JsonAnswer {
  readonly status: number;
  readonly type: string | null;
  readonly body: unknown;
}

class ExampleApp implements AsyncDisposable {
  readonly #port: number;
  readonly #stop: () => void;

  constructor(port: number, stop: () => void) {
    this.#port = port;
    this.#stop = stop;
  }

  async get(path: string, version: number): Promise<JsonAnswer> {
    const answer = await fetch(`http://127.0.0.1:${this.#port}${path}`, {
      headers: { Accept: `application/vnd.bookshop+json;version=${version}` },
    });
    return { status: answer.status, type: answer.headers.get('content-type'), body: await answer.json() };
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#stop();
    return Promise.resolve();
  }
}
