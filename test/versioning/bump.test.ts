import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { runBump } from '../../packages/versioning/src/bump/run';
import { TemporaryFolder } from '../support/data/temporary-folder';

let folder: TemporaryFolder;
let dir: string;
beforeEach(() => {
  folder = new TemporaryFolder();
  dir = folder.base;
});
afterEach(() => folder[Symbol.dispose]());

function write(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) folder.write(path, text);
}

function read(path: string): string {
  return readFileSync(join(dir, path), 'utf8');
}

function present(): readonly string[] {
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => (entry.isFile() ? join(entry.parentPath, entry.name).slice(dir.length + 1) : []));
}

function bump(...flags: readonly string[]) {
  return runBump(['--controllers', dir, ...flags]);
}

/** The subclass of a default export, and that of a named export. */
function ofDefault(from: string, name = 'Foo'): string {
  return `import ${name}V1 from '../v1/foo-controller${from}';\n\nexport default class ${name} extends ${name}V1 {}\n`;
}
function ofNamed(from: string): string {
  return `import { Foo as FooV1 } from '../v1/foo-controller${from}';\n\nexport class Foo extends FooV1 {}\n`;
}
const OF_COMMON_JS = "const FooV1 = require('../v1/foo-controller');\n\nmodule.exports = class Foo extends FooV1 {};\n";

/** A controller, the extension of its file, and the class that extends it. */
const FORMS: readonly (readonly [text: string, extension: string, next: string])[] = [
  ['export default class Foo extends Base {}', '.mjs', ofDefault('.mjs')],
  ['export default class extends Base {}', '.js', ofDefault('.js', 'FooController')],
  ['const text = `export class Quoted {}`; // export class Commented {}\nexport class Foo {}', '.js', ofNamed('.js')],
  ['export const LIMIT = 3;\nclass Foo {}\nexport { Foo, LIMIT as other };', '.js', ofNamed('.js')],
  ["'use strict';\nmodule.exports = class Foo extends Base {\n};\n", '.js', OF_COMMON_JS],
  ['class Foo {}\nmodule.exports = Foo;', '.js', OF_COMMON_JS],
  ['class Foo {}\nexport default Foo;', '.mjs', ofDefault('.mjs')],
  ['@Injectable()\nexport default class Foo {}', '.ts', ofDefault('.js')],
  ['export abstract class Foo<T> {}\nexport interface Row {}\nexport type Id = string;', '.ts', ofNamed('.js')],
  ["import { rows } from '../../rows';\nimport Koa from 'koa';\nexport default class Foo {}", '.ts', ofDefault('')],
  ["import { row } from './row.ts';\nexport class Foo {}", '.ts', ofNamed('.ts')],
];

describe('weir-bump', () => {
  it.each(FORMS)('extends %j in a file %s in the same style', (text, extension, next) => {
    write({ [`api/v1/foo-controller${extension}`]: text });
    expect(bump().exitCode).toBe(0);
    expect(read(`api/v2/foo-controller${extension}`)).toBe(next);
  });

  it('compares versions as numbers, keeps nested folders, and prints what it creates', () => {
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
    const run = bump();
    expect(run).toEqual({
      exitCode: 0,
      stdout:
        `created ${dir}/api/v11/a-controller.js\ncreated ${dir}/api/v11/admin/deep/b-controller.mjs\n` +
        'Each extends version 10. Declare the routes with api.version(11, () => api.inherit({ from: … })).\n',
      stderr: '',
    });
    expect(read('api/v11/admin/deep/b-controller.mjs')).toContain("from '../../../v10/admin/deep/b-controller.mjs'");
    expect(present()).toHaveLength(before + 2);
  });

  it('writes nothing in a dry run, and reads the folder itself when there is no namespace', () => {
    write({
      'shop/v1/a-controller.js': 'module.exports = class A {};',
      'v1/a-controller.js': 'module.exports = class A {};',
    });
    const before = present();
    const { exitCode, stdout } = bump('--namespace', 'shop', '--dry-run');
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^would create .*\/shop\/v2\/a-controller\.js\n/)]);
    expect(present()).toEqual(before);
    expect(bump('--namespace', '').exitCode).toBe(0);
    expect(present()).toContain('v2/a-controller.js');
  });

  it('creates nothing when one controller cannot be extended, and names each', () => {
    write({
      'api/v1/a-controller.js': 'module.exports = class A {};',
      'api/v1/b-controller.js': 'export class B {}\nexport class C {}',
      'api/v1/c-controller.js': 'const x = 1;',
      'api/v1/d-controller.js': 'export {',
    });
    const before = present();
    const { exitCode, stdout, stderr } = bump();
    expect([exitCode, stdout]).toEqual([1, '']);
    expect(stderr.split('\n').slice(0, 2)).toEqual([
      `weir-bump: ${dir}/api/v1/b-controller.js: it exports more than one class: B, C`,
      `${dir}/api/v1/c-controller.js: it exports no class in a form that is known here: see the README`,
    ]);
    expect(stderr).toContain(`${dir}/api/v1/d-controller.js: `);
    expect(present()).toEqual(before);
  });

  it('reports what was created when a later file cannot be written, and creates the others', () => {
    write({
      'api/v1/a-controller.js': 'module.exports = class A {};',
      'api/v1/deep/er/b-controller.js': 'module.exports = class B {};',
      'api/v1/z-controller.js': 'module.exports = class Z {};',
      'api/v2/deep': 'a file where a folder is needed',
      'api/v2/z-controller.js/in-the-way': '',
    });
    const { exitCode, stdout, stderr } = bump();
    const v2 = join(dir, 'api/v2');
    expect([exitCode, stdout]).toEqual([1, expect.any(String)]);
    expect(stdout).toContain(`created ${v2}/a-controller.js\nexists  ${v2}/z-controller.js\nEach extends version 1.`);
    expect(stderr).toMatch(
      new RegExp(`^weir-bump: cannot write ${v2}/deep/er/b-controller\\.js: ENOTDIR: [^\\n]*\\n$`),
    );
    expect(present()).toContain('api/v2/a-controller.js');
    write({ 'api/v9/a-controller.js': 'module.exports = class A {};', 'api/v10': 'a file in the place of the folder' });
    const inTheWay: unknown = expect.stringMatching(/^weir-bump: cannot write .*\/a-controller\.js: EEXIST: .*\n$/);
    expect(bump()).toEqual({ exitCode: 1, stdout: '', stderr: inTheWay });
  });

  it('explains a folder without controllers, and rejects an invalid command line with two lines', () => {
    expect(bump().stderr).toContain(`scandir '${dir}/api'`);
    write({ 'api/v1/readme.md': '' });
    const stderr = `weir-bump: there are no controllers in ${dir}/api/v<n>: no file is named like foo-controller.js\n`;
    expect(bump()).toEqual({ exitCode: 1, stdout: '', stderr });
    const wrong = runBump(['--controller', 'x']);
    const message = "Unknown option '--controller'";
    expect(wrong).toEqual({ exitCode: 2, stdout: '', stderr: expect.stringContaining(`weir-bump: ${message}\n`) });
    expect(wrong.stderr.split('\n').slice(1)).toEqual(['Run weir-bump -h for its flags.', '']);
    expect(runBump(['--help']).stdout).toContain('-dry-run');
    expect(runBump(['x']).exitCode).toBe(2);
  });
});
