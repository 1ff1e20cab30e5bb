// Builds dist/ from proto/, src/ and console/, and that of packages/versioning: generates the protobuf code, compiles, bundles the console, and
// makes the programs executable.
import { chmodSync, copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';
import { BUILD_STAMP, ROOT, run, printStatus } from './workspace.mjs';

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

printStatus('compiling packages/versioning and src/, each into its dist/');
for (const folder of ['packages/versioning/dist', 'dist'])
  rmSync(`${ROOT}/${folder}`, { recursive: true, force: true });
// First, because src/ uses its types.
run('node_modules/.bin/tsc', ['-p', 'packages/versioning']);
run('node_modules/.bin/tsc', ['-p', 'tsconfig.json']);

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
  banner: { js: `/*! preact\n${readFileSync(`${ROOT}/node_modules/preact/LICENSE`, 'utf8')}*/` },
});
for (const name of ['index.html', 'icon.svg']) copyFileSync(`${ROOT}/console/${name}`, `${ROOT}/dist/console/${name}`);

// tsc does not set the executable bit, and npm sets it only for an installed package.
const { bin } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8'));
for (const program of Object.values(bin)) chmodSync(`${ROOT}/${program}`, 0o755);

writeFileSync(BUILD_STAMP, `${started}\n`);
