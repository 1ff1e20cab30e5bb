// Compares the decoder of RateLimitRequests with the parser of Go's library, and records its results. See README.md.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, parseArgs } from 'node:util';

const require = createRequire(import.meta.url);
// oxlint-disable-next-line no-unassigned-import -- it registers itself as a loader of TypeScript
require('../../test/support/processes/typescript-hook.cjs');
const { mutatedMessage } = require('./mutated-messages.ts');
const { asDecoded, withoutRounding } = require('../../test/grpc/rate-limit/parsed-requests.ts');
const { seededRandom } = require('../../test/support/data/seeded-random.ts');
const { decodeRequest } = require('../../src/grpc/rate-limit/decode-request.ts');

const { values: options } = parseArgs({
  options: {
    messages: { type: 'string', default: '200000' },
    seed: { type: 'string', default: 'protobuf' },
    record: { type: 'string' },
    parser: { type: 'string', default: 'go run .' },
  },
});

function decoded(bytes) {
  try {
    return withoutRounding(decodeRequest(bytes));
  } catch {
    return undefined;
  }
}

const random = seededRandom(options.seed);
const messages = Array.from({ length: Number(options.messages) }, () => mutatedMessage(random));
const { stdout, status } = spawnSync(options.parser, {
  shell: true,
  cwd: fileURLToPath(new URL('protobuf', import.meta.url)),
  input: messages.map((bytes) => `${bytes.toString('hex')}\n`).join(''),
  stdio: ['pipe', 'pipe', 'inherit'],
  maxBuffer: 2 ** 31,
});
if (status !== 0) process.exit(1);
const results = stdout.toString().trimEnd().split('\n');

let accepted = 0;
let different = 0;
for (const [index, bytes] of messages.entries()) {
  const ours = decoded(bytes);
  const theirs = results[index] === 'rejected' ? undefined : asDecoded(JSON.parse(results[index]));
  if (theirs !== undefined) accepted += 1;
  if (isDeepStrictEqual(ours, theirs)) continue;
  different += 1;
  if (different <= 10)
    console.log(`${bytes.toString('hex')}\n  decoder ${JSON.stringify(ours)}\n  parser  ${results[index]}`);
}
console.log(`${messages.length} messages, of which the parser accepts ${accepted}: ${different} differences`);
if (options.record !== undefined) {
  const lines = messages.map((bytes, index) => `${bytes.toString('hex')} ${results[index]}\n`);
  writeFileSync(options.record, lines.join(''));
}
process.exit(different === 0 ? 0 : 1);
