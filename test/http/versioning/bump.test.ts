import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { runBump } from '../../../src/cli/bump/run-bump';

const ROOT = join(__dirname, '../../..');

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'weir-bump-'));
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
}

function present(): readonly string[] {
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => (entry.isFile() ? join(entry.parentPath, entry.name).slice(dir.length + 1) : []));
}

function bump(...flags: readonly string[]) {
  return runBump(['--controllers', dir, ...flags]);
}

/** A controller's file, and the one that extends it. */
const FORMS: Readonly<Record<string, readonly [name: string, text: string, next: string]>> = {
  'a default export': [
    'foo-controller.mjs',
    'export default class FooController extends Base {}',
    "import FooControllerV1 from '../v1/foo-controller.mjs';\n\nexport default class FooController extends FooControllerV1 {}\n",
  ],
  'a default export without a name': [
    'rate-limits-controller.js',
    'export default class extends Base {}',
    "import RateLimitsControllerV1 from '../v1/rate-limits-controller.js';\n\n" +
      'export default class RateLimitsController extends RateLimitsControllerV1 {}\n',
  ],
  'a class that is exported after its declaration': [
    'foo-controller.js',
    'class Foo {}\nexport default Foo;',
    "import FooV1 from '../v1/foo-controller.js';\n\nexport default class Foo extends FooV1 {}\n",
  ],
  'a named export': [
    'foo-controller.js',
    'const text = `export class Quoted {}`; // export class Commented {}\nexport class FooController {}',
    "import { FooController as FooControllerV1 } from '../v1/foo-controller.js';\n\n" +
      'export class FooController extends FooControllerV1 {}\n',
  ],
  'the only class among the exports': [
    'foo-controller.js',
    'export const LIMIT = 3;\nclass Foo {}\nexport { Foo, LIMIT as other };',
    "import { Foo as FooV1 } from '../v1/foo-controller.js';\n\nexport class Foo extends FooV1 {}\n",
  ],
  'module.exports = class': [
    'foo-controller.js',
    "'use strict';\nmodule.exports = class FooController extends Base {\n};\n",
    "const FooControllerV1 = require('../v1/foo-controller');\n\nmodule.exports = class FooController extends FooControllerV1 {};\n",
  ],
  'module.exports = Name': [
    'foo-controller.cjs',
    'class Foo {}\nmodule.exports = Foo;\n',
    "const FooV1 = require('../v1/foo-controller.cjs');\n\nmodule.exports = class Foo extends FooV1 {};\n",
  ],
  'module.exports = { Name }': [
    'foo-controller.js',
    'class Foo {}\nmodule.exports = { Foo };\n',
    "const { Foo: FooV1 } = require('../v1/foo-controller');\n\nexports.Foo = class Foo extends FooV1 {};\n",
  ],
  'exports.Name = class': [
    'foo-controller.js',
    'exports.Foo = class Foo {};\n',
    "const { Foo: FooV1 } = require('../v1/foo-controller');\n\nexports.Foo = class Foo extends FooV1 {};\n",
  ],
  'TypeScript that imports nothing': [
    'foo-controller.ts',
    'export abstract class FooController<T> {}\nexport interface Row {}\nexport type Id = string;',
    "import { FooController as FooControllerV1 } from '../v1/foo-controller.js';\n\n" +
      'export class FooController extends FooControllerV1 {}\n',
  ],
  'TypeScript that imports .ts files': [
    'foo-controller.ts',
    "import { rows } from '../../rows.ts';\nexport default class FooController {}",
    "import FooControllerV1 from '../v1/foo-controller.ts';\n\nexport default class FooController extends FooControllerV1 {}\n",
  ],
  'TypeScript that imports without extensions': [
    'foo-controller.ts',
    "import { rows } from '../../rows';\nimport Koa from 'koa';\nexport default class FooController {}",
    "import FooControllerV1 from '../v1/foo-controller';\n\nexport default class FooController extends FooControllerV1 {}\n",
  ],
};

describe('weir-bump', () => {
  it.each(Object.entries(FORMS))('extends %s in its own style', async (_form, [name, text, next]) => {
    write({ [`api/v1/${name}`]: text });
    expect((await bump()).exitCode).toBe(0);
    expect(readFileSync(join(dir, 'api/v2', name), 'utf8')).toBe(next);
  });

  it('compares versions as numbers, keeps nested folders, and prints what it creates', async () => {
    const text = 'export default class A {}';
    write({
      'api/v9/a-controller.js': text,
      'api/v10/a-controller.js': text,
      'api/v10/admin/deep/b-controller.mjs': text,
      'api/v10/helpers.js': text,
      'api/v10/a-controller.d.ts': text,
      'api/v11/notes.md': 'no controller',
      'api/v012/a-controller.js': text,
    });
    const before = present().length;
    const run = await bump();
    expect(run).toEqual({
      exitCode: 0,
      stdout:
        `created ${dir}/api/v11/a-controller.js\ncreated ${dir}/api/v11/admin/deep/b-controller.mjs\n` +
        'Each extends version 10. Declare the routes with api.version(11, () => api.inherit({ from: … })).\n',
      stderr: '',
    });
    expect(readFileSync(join(dir, 'api/v11/admin/deep/b-controller.mjs'), 'utf8')).toContain(
      "from '../../../v10/admin/deep/b-controller.mjs'",
    );
    expect(present()).toHaveLength(before + 2);
  });

  it('takes the import style of the other controllers for one that imports nothing', async () => {
    write({
      'api/v1/a-controller.ts': "import { b } from './b.ts';\nexport class A {}",
      'api/v1/c-controller.ts': 'export class C {}',
    });
    await bump();
    expect(readFileSync(join(dir, 'api/v2/c-controller.ts'), 'utf8')).toContain("from '../v1/c-controller.ts'");
  });

  it('creates JavaScript that loads and inherits, twice in a row', async () => {
    const show = "show() { return 'shown'; }";
    write({
      'api/v1/a-controller.mjs': `export default class A { ${show} }`,
      'api/v1/deep/b-controller.mjs': `export class B { ${show} }`,
      'api/v1/c-controller.cjs': `module.exports = class C { ${show} };`,
      'api/v1/d-controller.cjs': `exports.D = class D { ${show} };`,
      'api/v1/e-controller.cjs': `class E { ${show} }\nmodule.exports = { E };`,
      'api/v1/f-controller.cjs': `exports.__esModule = true;\nexports.default = class F { ${show} };`,
    });
    await bump();
    await bump();
    const load = `
      const { ControllerLoader } = require(${JSON.stringify(join(ROOT, 'dist/http/versioning/controllers/controller-loader'))});
      const loader = new ControllerLoader('.');
      const names = ['a', 'deep/b', 'c', 'd', 'e', 'f'].map((name) => loader.load('api/v3/' + name));
      console.log(names.map((It) => It.name + ' ' + new It().show()).join());`;
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', load], { cwd: dir });
    expect(stdout.trim()).toBe('A shown,B shown,C shown,D shown,E shown,FController shown');
  });

  it.each([
    ['without imports', ''],
    ['with compiled extensions', "import { row } from './row.js';\n"],
    ['with extensions of the source', "import { row } from './row.ts';\n"],
  ])('creates TypeScript %s that compiles', async (_style, line) => {
    write({
      'api/v1/row.ts': 'export const row = 1;',
      'api/v1/a-controller.ts': `${line}export default class A { show(): number { return ${line === '' ? '1' : 'row'}; } }`,
      'api/v1/b-controller.mts': `export class B { show(): number { return 1; } }`,
    });
    await bump();
    write({
      'use.ts':
        "import A from './api/v2/a-controller.js';\nimport { B } from './api/v2/b-controller.mjs';\nexport const sum: number = new A().show() + new B().show();",
      'package.json': '{"type":"module"}',
      'tsconfig.json': JSON.stringify({
        compilerOptions: { module: 'node20', strict: true, noEmit: true, allowImportingTsExtensions: true, types: [] },
      }),
    });
    const compiled = await promisify(execFile)(join(ROOT, 'node_modules/.bin/tsc'), ['-p', dir]).catch(
      (error: { stdout: string }) => error,
    );
    expect(compiled.stdout).toBe('');
  });

  it('writes nothing in a dry run', async () => {
    write({ 'shop/v1/a-controller.js': 'exports.A = class A {};' });
    const before = present();
    const { exitCode, stdout } = await bump('--namespace', 'shop', '--dry-run');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^would create .*\/shop\/v2\/a-controller\.js\n/);
    expect(present()).toEqual(before);
  });

  it('reads controllers directly in the folder when there is no namespace', async () => {
    write({ 'v1/a-controller.js': 'exports.A = class A {};' });
    expect((await bump('--namespace', '')).exitCode).toBe(0);
    expect(present()).toContain('v2/a-controller.js');
  });

  it('creates nothing when one controller cannot be extended, and names each', async () => {
    write({
      'api/v1/a-controller.js': 'exports.A = class A {};',
      'api/v1/b-controller.js': 'export class B {}\nexport class C {}',
      'api/v1/c-controller.js': 'const x = 1;',
      'api/v1/d-controller.js': 'export {',
    });
    const before = present();
    const { exitCode, stdout, stderr } = await bump();
    expect([exitCode, stdout]).toEqual([1, '']);
    expect(stderr.split('\n').slice(0, 2)).toEqual([
      `weir-bump: ${dir}/api/v1/b-controller.js: it exports more than one class: B, C`,
      `${dir}/api/v1/c-controller.js: it exports no class in a form that is known here: see the README`,
    ]);
    expect(stderr).toContain(`${dir}/api/v1/d-controller.js: `);
    expect(present()).toEqual(before);
  });

  it('reports what was created when a later file cannot be written, and creates the others', async () => {
    write({
      'api/v1/a-controller.js': 'exports.A = class A {};',
      'api/v1/deep/er/b-controller.js': 'exports.B = class B {};',
      'api/v1/z-controller.js': 'exports.Z = class Z {};',
      'api/v2/deep': 'a file where a folder is needed',
      'api/v2/z-controller.js/in-the-way': '',
    });
    const { exitCode, stdout, stderr } = await bump();
    const v2 = join(dir, 'api/v2');
    expect([exitCode, stdout.split('\n').slice(0, 3)]).toEqual([
      1,
      [
        `created ${v2}/a-controller.js`,
        `exists  ${v2}/z-controller.js`,
        expect.stringMatching(/^Each extends version 1\./),
      ],
    ]);
    expect(stderr).toMatch(
      new RegExp(`^weir-bump: cannot write ${v2}/deep/er/b-controller\\.js: ENOTDIR: [^\\n]*\\n$`),
    );
    expect(present()).toContain('api/v2/a-controller.js');
  });

  it('does not report a file as existing when another one is in the place of its folder', async () => {
    write({
      'api/v1/a-controller.js': 'exports.A = class A {};',
      'api/v1/b-controller.js': 'exports.B = class B {};',
      'api/v2': 'a file',
    });
    const { exitCode, stdout, stderr } = await bump();
    expect([exitCode, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(
      /^weir-bump: cannot write .*\/a-controller\.js: EEXIST: .*\n.*\/b-controller\.js: EEXIST: .*\n$/,
    );
  });

  it('names a folder that cannot be read', async () => {
    write({ 'api/v1/a-controller.js': 'exports.A = class A {};' });
    for (const folder of ['', 'api']) chmodSync(join(dir, folder), 0o755);
    const unreadable = join(dir, 'api/v1');
    chmodSync(unreadable, 0o000);
    // Permissions do not apply to root.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.('nobody');
    const { exitCode, stderr } = await bump().finally(() => {
      if (isRoot) process.seteuid?.(0);
      chmodSync(unreadable, 0o755);
    });
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(`cannot read the folder ${unreadable}: EACCES: `)]);
  });

  it('explains a folder without controllers', async () => {
    expect(await bump()).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`cannot read the folder ${dir}/api`) as string,
    });
    write({ 'api/v1/readme.md': '' });
    expect(await bump()).toMatchObject({
      exitCode: 1,
      stderr: `weir-bump: there are no controllers in ${dir}/api/v<n>: no file is named like foo-controller.js\n`,
    });
  });

  it('rejects an invalid command line with its usage', async () => {
    expect(await runBump(['--controller', 'x'])).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/^weir-bump: unknown flag -controller; did you mean -controllers\?\n/) as string,
    });
    expect((await runBump(['--help'])).stdout).toContain('-dry-run');
    expect((await runBump(['x'])).exitCode).toBe(2);
  });
});
