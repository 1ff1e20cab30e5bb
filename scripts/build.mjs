// Builds dist/ from proto/ and src/, and that of packages/versioning: generates the protobuf code, compiles, and makes the programs executable.
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

// tsc does not set the executable bit, and npm sets it only for an installed package.
const { bin } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8'));
for (const program of Object.values(bin)) chmodSync(`${ROOT}/${program}`, 0o755);

writeFileSync(BUILD_STAMP, `${started}\n`);
