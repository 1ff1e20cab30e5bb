// Builds dist/ from proto/, src/ and console/, and that of packages/versioning: generates the protobuf code, compiles,
// bundles the console, and makes the programs executable.
import { chmodSync, copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { build, transform } from 'esbuild';
import { BUILD_STAMP, CONSOLE_PAGES, ROOT, run, printStatus } from './workspace.mjs';

const started = new Date().toISOString();
printStatus('generating TypeScript from proto/');
rmSync(`${ROOT}/src/gen`, { recursive: true, force: true });
run('node_modules/.bin/buf', ['generate']);
// The descriptors for server reflection become a module, so that they are available wherever the program runs.
const descriptorSet = `${ROOT}/src/gen/descriptor-set.binpb`;
run('node_modules/.bin/buf', ['build', '--as-file-descriptor-set', '--exclude-source-info', '-o', descriptorSet]);
writeFileSync(
  `${ROOT}/src/gen/descriptor-set.ts`,
  `export const DESCRIPTOR_SET = '${readFileSync(descriptorSet, 'base64')}';\n`,
);
rmSync(descriptorSet);
// So that reports of weir-check explain a kind of finding in the words of the page.
const sections = readFileSync(`${ROOT}/docs/rule-errors.md`, 'utf8').matchAll(
  /^### `(.*)`\n([^]*?)(?=\n##|$(?![^]))/gm,
);
const ruleErrors = Object.fromEntries([...sections].map(([, code, text]) => [code, text.trim()]));
writeFileSync(
  `${ROOT}/src/gen/rule-errors.ts`,
  `export const RULE_ERRORS: Readonly<Record<string, string>> = ${JSON.stringify(ruleErrors, null, 2)};\n`,
);

printStatus('compiling packages/versioning and src/, each into its dist/');
for (const folder of ['packages/versioning/dist', 'dist'])
  rmSync(`${ROOT}/${folder}`, { recursive: true, force: true });
// First, because src/ uses its types.
run('node_modules/.bin/tsc', ['-p', 'packages/versioning']);
run('node_modules/.bin/tsc', ['-p', 'tsconfig.json']);

printStatus('bundling src/main.ts into dist/main.bundle.js');
const adaptations = {
  name: 'adaptations',
  setup({ onLoad }) {
    // In the bundle, `__dirname` is `dist/`; the modules of weir find their files from where tsc has put them.
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const source = readFileSync(path, 'utf8').replace(/^#!.*/, '');
      const folder = relative(`${ROOT}/src`, dirname(path));
      return { loader: 'ts', contents: source.replaceAll('__dirname', `(__dirname + '/${folder}')`) };
    });
    // JSON.parse reads this large table in a fraction of the time and memory that an object literal takes.
    onLoad({ filter: /mime-db\/db\.json$/ }, ({ path }) => {
      const text = JSON.stringify(JSON.parse(readFileSync(path, 'utf8')));
      return { contents: `module.exports = JSON.parse(${JSON.stringify(text)});` };
    });
    // The bundle renames classes where names collide; this library reads the names of its own.
    onLoad({ filter: /node_modules\/(?:ioredis|redis-errors)\/.*\.js$/ }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, 'utf8'), { keepNames: true });
      return { contents: code };
    });
  },
};
await build({
  absWorkingDir: ROOT,
  entryPoints: ['src/main.ts'],
  outfile: 'dist/main.bundle.js',
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  // The first so that what is not used of it is left out; the second is there in two versions.
  alias: { rxjs: `${ROOT}/node_modules/rxjs/dist/esm/index.js`, 'mime-db': `${ROOT}/node_modules/mime-db` },
  // Loaded when they are used, if at all.
  external: ['@opentelemetry/*', '@grpc/grpc-js', 'node-unix-socket', 're2js'],
  // So that these are loaded by the `require` that the bundle is given.
  supported: { 'dynamic-import': false },
  // An expression, so that it is compiled as it is in the file: src/launch.ts calls the function.
  banner: { js: '(function (exports, require, module, __filename, __dirname) {' },
  footer: { js: '})' },
  plugins: [adaptations],
  logLevel: 'warning',
});
// src/launch.ts reads Latin-1, but esbuild leaves other characters in tagged templates, regular expressions and
// comments. Raw templates, in which an escape would stay as it is, must have none.
const bundle = `${ROOT}/dist/main.bundle.js`;
writeFileSync(bundle, readFileSync(bundle, 'utf8').replace(/[^\0-\x7f]/g, escaped));
renameSync(`${ROOT}/dist/launch.js`, `${ROOT}/dist/main.js`);
run(process.execPath, ['scripts/code-cache.cjs']);

printStatus('bundling console/ into dist/console/');
await build({
  absWorkingDir: ROOT,
  entryPoints: ['console/main.tsx', 'console/app.css'],
  entryNames: '[name]',
  outdir: 'dist/console',
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  logLevel: 'warning',
  // A part of the bundle: its licence asks for this.
  banner: { js: licenceOf('preact') },
});
for (const name of ['index.html', 'icon.svg']) copyFileSync(`${ROOT}/console/${name}`, `${ROOT}/dist/console/${name}`);
mkdirSync(`${ROOT}/dist/console/docs`);
for (const path of CONSOLE_PAGES) copyFileSync(`${ROOT}/${path}`, `${ROOT}/dist/console/${path}`);

// tsc does not set the executable bit, and npm sets it only for an installed package.
const { bin } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8'));
for (const program of Object.values(bin)) chmodSync(`${ROOT}/${program}`, 0o755);

writeFileSync(BUILD_STAMP, `${started}\n`);

/** An escape sequence in place of a code unit that is not ASCII. */
function escaped(unit) {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function licenceOf(name) {
  return `/*! ${name}\n${readFileSync(new URL('LICENSE', import.meta.resolve(`${name}/package.json`)), 'utf8')}*/`;
}
