// The CPU time of reading a body of /json: with weir's reader, and with the JSON reader of the protobuf library on the descriptors of
// the same message, whose result is not yet the limiter's request. JSON.parse is the lower bound of what reads a body twice. The
// readers take turns, and the fastest of the turns counts.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { createFileRegistry, fromBinary, fromJsonString } = require('@bufbuild/protobuf');
const { FileDescriptorSetSchema } = require('@bufbuild/protobuf/wkt');
const { DESCRIPTOR_SET } = require('../../dist/gen/descriptor-set.js');
const { readRequest } = require('../../dist/http/json/read-request.js');

const TURNS = 9;
/** Characters that a reader reads in one turn. */
const CHARACTERS_PER_TURN = 4e6;
const MAX_BODY = 1024 * 1024;

const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, Buffer.from(DESCRIPTOR_SET, 'base64')));
const schema = registry.getMessage('envoy.service.ratelimit.v3.RateLimitRequest');

const readers = {
  weir: readRequest,
  library: (text) => fromJsonString(schema, text),
  'JSON.parse': (text) => JSON.parse(text),
};

function entry(key, value) {
  return { key, value };
}

function request(descriptors) {
  return JSON.stringify({ domain: 'shop', descriptors });
}

/** As many of these elements as the largest body holds. */
function largest(before, element, after, last = element) {
  const count = Math.floor((MAX_BODY - before.length - after.length) / (element.length + 1)) - 1;
  return `${before}${`${element},`.repeat(count)}${last}${after}`;
}

const bodies = {
  'one descriptor': request([{ entries: [entry('user', 'alice')] }]),
  'three descriptors': request([
    { entries: [entry('remote_address', '10.1.2.3'), entry('path', '/api/v1/items')] },
    { entries: [entry('user', 'alice')], hitsAddend: 2 },
    { entries: [entry('tenant', 'acme'), entry('plan', 'gold')], limit: { requestsPerUnit: 42, unit: 'HOUR' } },
  ]),
  '1,000 descriptors': request(Array.from({ length: 1000 }, (_, user) => ({ entries: [entry('user', `u${user}`)] }))),
  '1 MiB of empty descriptors': largest('{"descriptors":[', '{}', ']}'),
  '1 MiB of empty descriptors, the last one wrong': largest('{"descriptors":[', '{}', ']}', '5'),
  '1 MiB of arrays in an unknown field': `{"x":${'['.repeat(MAX_BODY / 2 - 4)}${']'.repeat(MAX_BODY / 2 - 4)}}`,
};

/** CPU time of one read, in microseconds. */
function timeOf(read, text, reads) {
  const before = process.cpuUsage();
  for (let index = 0; index < reads; index += 1) {
    try {
      read(text);
    } catch {
      // A rejection costs time, too.
    }
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / reads;
}

for (const [name, text] of Object.entries(bodies)) {
  const reads = Math.ceil(CHARACTERS_PER_TURN / text.length);
  const fastest = {};
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (const [reader, read] of Object.entries(readers)) {
      fastest[reader] = Math.min(fastest[reader] ?? Number.POSITIVE_INFINITY, timeOf(read, text, reads));
    }
  }
  process.stdout.write(`${name}, ${text.length} characters\n`);
  for (const [reader, time] of Object.entries(fastest)) {
    const ratio = (time / fastest.weir).toFixed(2);
    process.stdout.write(`  ${reader.padEnd(12)}${time.toFixed(1).padStart(10)} µs, ratio ${ratio.padStart(6)}\n`);
  }
}
