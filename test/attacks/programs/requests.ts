import { RateLimitRequest } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { seededRandom } from '../../grpc/http2/seeded-random';
import { requestMessage } from '../../support/clients/grpc-client';
import { Answers, type Attack } from '../attack';
import { GrpcPeer, concurrently } from '../peers';

const MIB = 1_048_576;
const rules = {
  'attacked.yaml':
    'domain: attacked\ndescriptors: [{ key: k, rate_limit: { unit: year, requests_per_unit: 1000000 } }]\n',
};

let rounds = 0;

/** Calls with the most hits that a number holds exactly, then calls on the same counter. */
const mostHits: Attack['run'] = async (target, answers) => {
  using peer = new GrpcPeer(target, answers);
  rounds += 1;
  const entries = [{ key: 'k', value: `${process.pid}-${rounds}` }];
  const descriptor = { entries, limit: undefined, isNegativeHits: false, hitsAddend: undefined };
  for (let call = 0; call < 100; call += 1) {
    await peer.call(requestMessage('attacked', [{ ...descriptor, hitsAddend: BigInt(Number.MAX_SAFE_INTEGER) }]));
    await peer.call(requestMessage('attacked', [descriptor]));
  }
};

/** A valid message in which some bytes are replaced. */
function damaged(random: () => number): Buffer {
  const entries = Array.from({ length: 5 }, (_, at) => ({ key: 'k', value: 'value'.repeat(at) }));
  const descriptors = Array.from({ length: 5 }, () => ({
    entries,
    limit: { requestsPerUnit: 5, unit: 1 },
    hitsAddend: 3n,
    isNegativeHits: false,
  }));
  const message = Buffer.from(RateLimitRequest.encode({ domain: 'attacked', descriptors, hitsAddend: 1 }).finish());
  for (let change = 0; change < 4; change += 1) message[Math.floor(random() * message.length)] = random() * 256;
  return message;
}

/** A valid request of this many bytes, nearly all of them in an unknown field. */
function longMessage(bytes: number): Buffer {
  const length = [(bytes & 0x7f) | 0x80, ((bytes >>> 7) & 0x7f) | 0x80, ((bytes >>> 14) & 0x7f) | 0x80, bytes >>> 21];
  return Buffer.concat([requestMessage('attacked', ['k=long']), Buffer.from([0x7a, ...length]), Buffer.alloc(bytes)]);
}

/** Requests that are small, and wrong in themselves. */
export const REQUESTS = {
  '100 calls with 2^53 − 1 hits, and calls on the same counter': { rules, run: mostHits },
  '100 calls with 2^53 − 1 hits, and calls on the same counter, with Redis': { rules, store: 'redis', run: mostHits },
  '5,000 calls with damaged messages': {
    rules,
    run: async (target, answers) => {
      using peer = new GrpcPeer(target, answers);
      const random = seededRandom('damaged messages');
      await concurrently(5_000, 50, () => peer.call(damaged(random)));
    },
  },
  '18 connections with 15 MiB of unfinished messages each, then 20 calls of 2 MiB': {
    rules,
    run: async (target, answers) => {
      const peers = Array.from({ length: 18 }, () => new GrpcPeer(target, answers));
      const records = await Promise.all(
        peers.flatMap((peer) => Array.from({ length: 5 }, () => peer.callUnfinished(Buffer.alloc(3 * MIB)))),
      );
      const long = new Answers();
      using peer = new GrpcPeer(target, long);
      await concurrently(20, 4, () => peer.call(longMessage(2 * MIB)));
      for (const [answer, count] of long.entries()) answers.add(`${answer} for 2 MiB`, count);
      for (const record of records) record();
      for (const each of peers) each[Symbol.dispose]();
    },
  },
} as const satisfies Record<string, Attack>;
