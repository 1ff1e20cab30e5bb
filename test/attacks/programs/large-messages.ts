import { gzipSync } from 'node:zlib';
import { RateLimitRequest } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { requestMessage } from '../../support/clients/grpc-client';
import type { Attack } from '../attack';
import { GrpcPeer, concurrently } from '../peers';

/** What fits into a message of 4 MiB next to the rest of the request. */
const ALMOST_4_MIB = 4 * 1_048_576 - 256;

const FILLED = {
  'filled.yaml': 'domain: filled\ndescriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: 1000000 } }]\n',
};

/** Rules whose wildcards have to search the whole value. */
const NEEDLES = {
  'needles.yaml': [
    'domain: needles',
    'descriptors:',
    ...Array.from(
      { length: 1000 },
      (_, at) => `  - { key: k, value: "*needle${at}*", rate_limit: { unit: year, requests_per_unit: 1000000 } }`,
    ),
    '',
  ].join('\n'),
};

interface Calls {
  readonly calls: number;
  /** Connections for them; 1 by default. */
  readonly connections?: number;
  readonly isCompressed?: boolean;
}

/** Sends the same message many times, twenty at a time. */
function sameMessage(message: () => Buffer, { calls, connections = 1, isCompressed = false }: Calls): Attack['run'] {
  let sent: Buffer | undefined;
  return async (target, answers) => {
    sent ??= isCompressed ? gzipSync(message()) : message();
    const bytes = sent;
    const peers = Array.from({ length: connections }, () => new GrpcPeer(target, answers));
    await concurrently(calls, 20, (at) => peers[at % connections]!.call(bytes, { isCompressed }));
    for (const peer of peers) peer[Symbol.dispose]();
  };
}

/** Numbers of values, different in each process and each round. */
let serial = (process.pid % 100_000) * 1_000_000;

/** Counts a hit for each of many new values. */
function newValues({ calls, values, bytes }: { calls: number; values: number; bytes: number }): Attack['run'] {
  function value() {
    serial += 1;
    return `k=${String(serial).padEnd(bytes, 'x')}`;
  }
  return async (target, answers) => {
    using peer = new GrpcPeer(target, answers);
    await concurrently(calls, 20, () => peer.call(requestMessage('filled', Array.from({ length: values }, value))));
  };
}

/** A message with as many descriptors, or entries of one descriptor, as 4 MiB allow, all of them empty. */
function emptyFields(kind: 'descriptors' | 'entries'): Buffer {
  const domain = Buffer.from(RateLimitRequest.encode({ domain: 'filled', descriptors: [], hitsAddend: 0 }).finish());
  if (kind === 'descriptors') return Buffer.concat([domain, Buffer.alloc(ALMOST_4_MIB, Buffer.from([0x12, 0x00]))]);
  const length: number[] = [];
  let rest = ALMOST_4_MIB;
  for (; rest >= 0x80; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
  const entries = Buffer.alloc(ALMOST_4_MIB, Buffer.from([0x0a, 0x00]));
  return Buffer.concat([domain, Buffer.from([0x12, ...length, rest]), entries]);
}

/** Values in which every needle begins everywhere, and none is found. */
function haystacks(values: number, bytes: number): Buffer {
  const value = 'needle'.repeat(bytes / 6);
  return requestMessage(
    'needles',
    Array.from({ length: values }, () => `k=${value}`),
  );
}

/** Messages that are large, or are small on the wire and large once they are decompressed. */
export const LARGE_MESSAGES = {
  '60 calls of 4 KB, each 2 million empty entries': {
    rules: FILLED,
    run: sameMessage(() => emptyFields('entries'), { calls: 60, isCompressed: true }),
  },
  '60 calls of 4 KB, each 2 million empty descriptors': {
    rules: FILLED,
    run: sameMessage(() => emptyFields('descriptors'), { calls: 60, isCompressed: true }),
  },
  '200 calls of 6 KB on 40 connections, each a value of 4 MiB for 1,000 wildcard rules': {
    rules: NEEDLES,
    run: sameMessage(() => haystacks(1, ALMOST_4_MIB), { calls: 200, connections: 40, isCompressed: true }),
  },
  '200 calls of 10 KB on 40 connections, each 1,000 values of 4 KB for 1,000 wildcard rules': {
    rules: NEEDLES,
    run: sameMessage(() => haystacks(1_000, 4_080), { calls: 200, connections: 40, isCompressed: true }),
  },
  '800 calls, each a value of 240 KB for 1,000 wildcard rules': {
    rules: NEEDLES,
    run: sameMessage(() => haystacks(1, 240_000), { calls: 800 }),
  },
  '800 calls, each 1,000 values of 200 bytes for 1,000 wildcard rules': {
    rules: NEEDLES,
    run: sameMessage(() => haystacks(1_000, 198), { calls: 800 }),
  },
  '2,400 calls, each a new value of 250 KB, with a heap of 512 MiB': {
    settings: { NODE_OPTIONS: '--max-old-space-size=512' },
    rules: FILLED,
    run: newValues({ calls: 2_400, values: 1, bytes: 250_000 }),
  },
  '200 calls, each 1,000 new values of 200 bytes, with MEMORY_MAX_BYTES=16777216': {
    settings: { MEMORY_MAX_BYTES: '16777216' },
    rules: FILLED,
    run: newValues({ calls: 200, values: 1_000, bytes: 200 }),
  },
} as const satisfies Record<string, Attack>;
