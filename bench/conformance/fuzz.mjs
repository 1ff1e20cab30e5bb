// Runs test/grpc/http2/fuzz.test.ts for longer: `node bench/conformance/fuzz.mjs [connections] [seed]`.
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { fileURLToPath } from 'node:url';

const [, , sequences = '5000000', seed = String(randomInt(2 ** 32))] = process.argv;
const { status } = spawnSync('node_modules/.bin/jest', ['test/grpc/http2/fuzz.test.ts'], {
  cwd: fileURLToPath(new URL('../..', import.meta.url)),
  env: { ...process.env, WEIR_FUZZ_SEQUENCES: sequences, WEIR_SEED: seed },
  stdio: 'inherit',
});
process.exit(status ?? 1);
