// Makes dist/ from proto/ and src/: generates the protobuf code, compiles, and lets the programs be executed.
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { BUILD_STAMP, ROOT, run, say } from './workspace.mjs';

const started = new Date().toISOString();
say('generating TypeScript from proto/');
rmSync(`${ROOT}/src/gen`, { recursive: true, force: true });
run('node_modules/.bin/buf', ['generate']);

say('compiling src/ into dist/');
rmSync(`${ROOT}/dist`, { recursive: true, force: true });
run('node_modules/.bin/tsc', ['-p', 'tsconfig.json']);

// tsc does not set the executable bit, and npm sets it only for an installed package.
const { bin } = JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8'));
for (const program of Object.values(bin)) chmodSync(`${ROOT}/${program}`, 0o755);

writeFileSync(BUILD_STAMP, `${started}\n`);
