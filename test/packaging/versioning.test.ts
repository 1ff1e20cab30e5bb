import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readFileSync } from 'node:fs';

const ROOT = join(__dirname, '../..');
const exec = promisify(execFile);

describe('the package entry weir-ratelimit/versioning', () => {
  it.each([
    ['require', ['-e', "console.log(Object.keys(require('weir-ratelimit/versioning')).sort().join())"]],
    [
      'import',
      [
        '--input-type=module',
        '-e',
        "import { api, DeclarationError } from 'weir-ratelimit/versioning'; console.log([DeclarationError, api].map((it) => it.name).join())",
      ],
    ],
  ])('works with %s', async (_how, args) => {
    expect((await exec(process.execPath, args, { cwd: ROOT })).stdout.trim()).toBe('DeclarationError,api');
  });

  it('has types for both kinds of modules, which accept the router of either', async () => {
    const folder = await mkdtemp(join(ROOT, 'test/packaging/.types-'));
    try {
      const text = `import Router from '@koa/router';
import { api, type Api, type ApiOptions } from 'weir-ratelimit/versioning';
class Foo { index(): string { return ''; } }
const options: ApiOptions = { vendorString: 'acme', controllers: () => Foo };
api(new Router(), options, (it: Api) => it.version(1, () => {
  it.resources('foo', { only: 'index' }, () => it.resources('bar', { only: ['index', 'show'] }));
  // @ts-expect-error -- there is no such action
  it.resources('foo', { only: 'list' });
}));
`;
      for (const extension of ['cts', 'mts']) await writeFile(join(folder, `app.${extension}`), text);
      const tsc = join(ROOT, 'node_modules/.bin/tsc');
      const flags = [
        '--noEmit',
        '--strict',
        '--module',
        'node20',
        '--target',
        'es2023',
        '--types',
        'node',
        '--esModuleInterop',
      ];
      const files = ['cts', 'mts'].map((extension) => join(folder, `app.${extension}`));
      const { stdout } = await exec(tsc, [...flags, '--skipLibCheck', '--ignoreConfig', ...files]).catch(
        (error: { stdout: string }) => error,
      );
      expect(stdout).toBe('');
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
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
