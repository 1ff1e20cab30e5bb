import { gzipSync } from 'node:zlib';
import { RateLimitRequest } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { seededRandom } from '../../support/data/seeded-random';
import { requestMessage } from '../../support/clients/grpc-client';
import { type Answers, type Attack, GrpcPeer, concurrently } from '../peers';

const MIB = 1_048_576;
/** What fits into a message of 4 MiB next to the rest of the request. */
const ALMOST_4_MIB = 4 * MIB - 256;

// The counters of an hour are evicted before those of the well-behaved client, which are of a year.
const FILLED = {
  'filled.yaml': 'domain: filled\ndescriptors: [{ key: k, rate_limit: { unit: hour, requests_per_unit: 1000000 } }]\n',
};

/** Rules whose wildcards have to search the whole value. */
const NEEDLES = {
  'needles.yaml': `domain: needles\ndescriptors:\n${Array.from(
    { length: 1000 },
    (_, at) => `  - { key: k, value: "*needle${at}*", rate_limit: { unit: year, requests_per_unit: 1000000 } }\n`,
  ).join('')}`,
};

/** Sends the same message many times, twenty at a time. */
function sameMessage(message: () => Buffer, calls: number, connections = 1): Attack['run'] {
  return async (target, answers) => {
    const bytes = message();
    const peers = Array.from({ length: connections }, () => new GrpcPeer(target, answers));
    await concurrently(calls, 20, (at) => peers[at % connections]!.call(bytes));
    for (const peer of peers) peer[Symbol.dispose]();
  };
}

/** Counts a hit for each of many new values. */
function newValues({ calls, values, bytes }: { calls: number; values: number; bytes: number }): Attack['run'] {
  return async (target, answers) => {
    using peer = new GrpcPeer(target, answers);
    await concurrently(calls, 20, (call) => {
      const entries = Array.from({ length: values }, (_, at) => `k=${String(call * values + at).padEnd(bytes, 'x')}`);
      return peer.call(requestMessage('filled', entries));
    });
  };
}

/** A length-delimited field. */
function delimited(tag: number, content: Buffer): Buffer {
  const length: number[] = [];
  let rest = content.length;
  for (; rest >= 0x80; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
  return Buffer.concat([Buffer.from([tag, ...length, rest]), content]);
}

const FILLED_DOMAIN = requestMessage('filled', []);
/** Messages with as many empty entries of one descriptor, or as many empty descriptors, as 4 MiB allow. */
function emptyEntries(): Buffer {
  return Buffer.concat([FILLED_DOMAIN, delimited(0x12, Buffer.alloc(ALMOST_4_MIB, Buffer.from([0x0a, 0x00])))]);
}
function emptyDescriptors(): Buffer {
  return Buffer.concat([FILLED_DOMAIN, Buffer.alloc(ALMOST_4_MIB, Buffer.from([0x12, 0x00]))]);
}

/** Calls with values of so many bytes in which every needle begins everywhere, and none is found. */
function haystacks(values: number, bytes: number, ...calls: [calls: number, connections?: number]): Attack {
  function message(): Buffer {
    return requestMessage('needles', Array<string>(values).fill(`k=${'needle'.repeat(bytes / 6)}`));
  }
  return { rules: NEEDLES, run: sameMessage(message, ...calls) };
}

/** Messages that are large, or have many parts. */
export const LARGE_MESSAGES = {
  '60 calls of 4 MiB on 20 connections, each 2 million empty entries': {
    rules: FILLED,
    run: sameMessage(emptyEntries, 60, 20),
  },
  '60 calls of 4 MiB on 20 connections, each 2 million empty descriptors': {
    rules: FILLED,
    run: sameMessage(emptyDescriptors, 60, 20),
  },
  '200 calls on 40 connections, each a value of 4 MiB for 1,000 wildcard rules': haystacks(1, ALMOST_4_MIB, 200, 40),
  '200 calls on 40 connections, each 1,000 values of 4 KB for 1,000 wildcard rules': haystacks(1_000, 4_080, 200, 40),
  '800 calls, each a value of 240 KB for 1,000 wildcard rules': haystacks(1, 240_000, 800),
  '800 calls, each 1,000 values of 200 bytes for 1,000 wildcard rules': haystacks(1_000, 198, 800),
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

/** Calls with the most hits that a number holds exactly, then calls on the same counter. */
const mostHits: Attack['run'] = async (target, answers) => {
  using peer = new GrpcPeer(target, answers);
  const descriptor = { entries: [{ key: 'k', value: 'x' }], limit: undefined, isNegativeHits: false };
  for (let call = 0; call < 100; call += 1) {
    for (const hitsAddend of [BigInt(Number.MAX_SAFE_INTEGER), undefined]) {
      await peer.call(requestMessage('filled', [{ ...descriptor, hitsAddend }]));
    }
  }
};

/** A valid message in which some bytes are replaced. */
function damaged(random: () => number): Buffer {
  const entries = Array.from({ length: 5 }, (_, at) => ({ key: 'k', value: 'value'.repeat(at) }));
  const limit = { requestsPerUnit: 5, unit: 1 };
  const descriptors = Array.from({ length: 5 }, () => ({ entries, limit, hitsAddend: 3n, isNegativeHits: false }));
  const message = Buffer.from(RateLimitRequest.encode({ domain: 'filled', descriptors, hitsAddend: 1 }).finish());
  return changed(message, random);
}

/** The bytes, of which some are replaced. */
function changed(bytes: Buffer, random: () => number): Buffer {
  for (let change = 0; change < 4; change += 1) bytes[Math.floor(random() * bytes.length)] = random() * 256;
  return bytes;
}

/** Calls with such messages, on twenty connections. */
function compressed(calls: number, messages: () => () => Buffer): Attack {
  return {
    rules: FILLED,
    run: async (target, answers) => {
      const next = messages();
      const peers = Array.from({ length: 20 }, () => new GrpcPeer(target, answers));
      await concurrently(calls, 100, (at) => peers[at % peers.length]!.call(next(), true));
      for (const peer of peers) peer[Symbol.dispose]();
    },
  };
}

/** Requests that are small, and wrong in themselves. */
export const OTHER_MESSAGES = {
  '100 calls with 2^53 − 1 hits, and calls on the same counter': { rules: FILLED, run: mostHits },
  '100 calls with 2^53 − 1 hits, and calls on the same counter, with Redis': {
    rules: FILLED,
    store: 'redis',
    run: mostHits,
  },
  '5,000 calls with damaged messages': {
    rules: FILLED,
    run: async (target, answers) => {
      using peer = new GrpcPeer(target, answers);
      const random = seededRandom('damaged messages');
      await concurrently(5_000, 50, () => peer.call(damaged(random)));
    },
  },
  '1,000 calls on 20 connections, each 400 MiB in 400 KB of gzip': compressed(1_000, () => {
    const bomb = gzipSync(Buffer.alloc(400 * MIB));
    return () => bomb;
  }),
  '1,000 calls on 20 connections, each 4 MiB of gzip without its end': compressed(1_000, () => {
    const cut = gzipSync(Buffer.alloc(ALMOST_4_MIB)).subarray(0, -9);
    return () => cut;
  }),
  '5,000 calls on 20 connections with damaged gzip': compressed(5_000, () => {
    const random = seededRandom('damaged gzip');
    return () => changed(gzipSync(requestMessage('filled', ['k=damaged'])), random);
  }),
  '18 connections with 15 MiB of unfinished messages each, then 20 calls of 2 MiB': {
    rules: FILLED,
    run: async (target, answers) => {
      const peers = Array.from({ length: 18 }, () => new GrpcPeer(target, answers));
      const unfinished = peers.flatMap((peer) => Array.from({ length: 5 }, () => peer));
      const records = await Promise.all(unfinished.map((peer) => peer.callUnfinished(Buffer.alloc(3 * MIB))));
      const long: Answers = new Set();
      using peer = new GrpcPeer(target, long);
      // A valid request, nearly all of it in an unknown field.
      const message = Buffer.concat([requestMessage('filled', ['k=long']), delimited(0x7a, Buffer.alloc(2 * MIB))]);
      await concurrently(20, 4, () => peer.call(message));
      for (const answer of long) answers.add(`${answer} for 2 MiB`);
      for (const record of records) record();
      for (const each of peers) each[Symbol.dispose]();
    },
  },
} as const satisfies Record<string, Attack>;
