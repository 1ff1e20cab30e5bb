import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(__dirname, '../../..');

/** Loads the controller of `foo` as an application would, in a Node of its own, and prints what its action returns. */
const PROGRAM = `
const Router = require('@koa/router');
const { api } = require('weir-ratelimit/versioning');
const router = new Router();
try {
  api(router, { vendorString: 'acme', controllers: 'controllers' }, (api) => {
    api.version(1, () => api.resources('foo', { only: 'show' }));
  });
} catch (error) {
  console.log(error.name + ': ' + error.message.replace(process.cwd(), ''));
}
const ctx = { vary() {}, get: () => '', method: 'GET', path: '/api/foo/1', matched: router.stack, params: {}, state: {} };
router.stack[0]?.stack[0](ctx, () => {}).then(() => console.log(ctx.body));
`;

async function run(files: Readonly<Record<string, string>>, ...flags: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'weir-controllers-'));
  try {
    const all = { ...files, 'program.cjs': PROGRAM };
    for (const [path, text] of Object.entries(all)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    await mkdir(join(folder, 'node_modules/@koa'), { recursive: true });
    await symlink(ROOT, join(folder, 'node_modules/weir-ratelimit'));
    await symlink(join(ROOT, 'node_modules/@koa/router'), join(folder, 'node_modules/@koa/router'));
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, 'program.cjs'], { cwd: folder });
    return stdout.trim();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const FOO = 'controllers/api/v1/foo-controller';
const CLASS = "class Foo { show() { return 'shown'; } }";

describe('a controller', () => {
  it.each([
    ['module.exports in .js', { [`${FOO}.js`]: `module.exports = ${CLASS};` }],
    ['module.exports in .cjs', { [`${FOO}.cjs`]: `module.exports = ${CLASS};` }],
    [
      'a named export in .cjs',
      { [`${FOO}.cjs`]: `exports.Foo = ${CLASS}; exports.limit = 1; exports.make = () => 1;` },
    ],
    ['compiled TypeScript', { [`${FOO}.js`]: `exports.__esModule = true; exports.default = ${CLASS};` }],
    ['a default export in .mjs', { [`${FOO}.mjs`]: `export default ${CLASS}` }],
    ['a named export in .mjs', { [`${FOO}.mjs`]: `export ${CLASS}\nexport const limit = 1;` }],
    [
      'a default export in .js of an ES package',
      { [`${FOO}.js`]: `export default ${CLASS}`, 'package.json': '{"type":"module"}' },
    ],
  ])('may be %s', async (_form, files) => {
    expect(await run(files)).toBe('shown');
  });

  it('may be TypeScript when a loader for it is present', async () => {
    const loader = `require.extensions['.ts'] = (module, file) => module._compile(${JSON.stringify(`module.exports = ${CLASS};`)}, file);`;
    const files = { [`${FOO}.ts`]: 'export default class Foo { show(): string { return "" } }', 'loader.cjs': loader };
    expect(await run(files, '--require', './loader.cjs')).toBe('shown');
  });

  it('in TypeScript that the process does not run is an error that says what to do', async () => {
    const hasTypes = Boolean(Reflect.get(process.features, 'typescript'));
    const printed = await run({ [`${FOO}.ts`]: 'export default class Foo { show(): string { return "shown" } }' });
    expect(printed).toBe(
      hasTypes
        ? 'shown'
        : "DeclarationError: api > version 1 > resources 'foo': the controller /controllers/api/v1/foo-controller.ts is TypeScript, " +
            'which this process does not run: compile it, or run the application with Node 22.18 or newer, or with a loader such as tsx',
    );
  });

  it('that awaits while it is loaded is an error that says so', async () => {
    expect(await run({ [`${FOO}.mjs`]: `await 1;\nexport default ${CLASS}` })).toBe(
      "DeclarationError: api > version 1 > resources 'foo': cannot load the controller /controllers/api/v1/foo-controller.mjs: " +
        'it uses await outside of functions, so it cannot be loaded when routes are declared',
    );
  });
});
