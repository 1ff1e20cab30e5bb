import { compressionAlgorithms, credentials, type ServiceError, status } from '@grpc/grpc-js';
import type { RateLimitResponse } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const WILDCARDS = 1_000;
const GOOD_CALLS = 100;

/** The limit of a rule is its number, so that an answer shows which rule was found. */
function rule(value: string, limit: number): string {
  return `  - { key: path, value: "${value}", rate_limit: { unit: day, requests_per_unit: ${limit} } }\n`;
}

function numbered<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

const RULES = `domain: shop
descriptors:
${numbered(WILDCARDS, (index) => rule(`*needle${index}x*`, 1_000_000 + index)).join('')}\
${numbered(WILDCARDS, (index) => rule(`*${'y'.repeat(index + 1)}*end*`, 2_000_000 + index)).join('')}`;

/** The numbers of the rules that the descriptors match; undefined for none. */
function found({ statuses }: RateLimitResponse): readonly (number | undefined)[] {
  return statuses.map(({ currentLimit }) => currentLimit?.requestsPerUnit);
}

const LONG = `path=${'needle '.repeat(4_000_000 / 7)}`;
const ATTACKS: readonly { readonly descriptors: readonly string[]; readonly matched?: readonly unknown[] }[] = [
  { descriptors: [LONG] },
  { descriptors: numbered(1000, (index) => `path=${'needle '.repeat(580)}${index}`) },
  { descriptors: numbered(1000, (index) => `path=${'y'.repeat(250)}${index}`) },
  {
    descriptors: numbered(1000, (index) => `path=${'needle '.repeat(34)}needle${index}x`),
    matched: numbered(1000, (index) => 1_000_000 + index),
  },
];

it('calls with long values for 1,000 wildcards are rejected or correct, and those of another client are all answered', async () => {
  await using folder = await RuleFolder.with({ 'shop.yaml': RULES });
  await using weir = await WeirProcess.start({ env: folder.env });
  using good = new RateLimitClient(weir.grpcAddress);
  let isOver = false;
  async function attack({ descriptors, matched }: (typeof ATTACKS)[number]) {
    // Each attack has a connection of its own. Those that are to be rejected are small when compressed.
    using attacker = new RateLimitClient(weir.grpcAddress, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      ...(matched === undefined && { 'grpc.default_compression_algorithm': compressionAlgorithms.gzip }),
    });
    do {
      const call = attacker.shouldRateLimit('shop', descriptors);
      const answer = await call.then(found, ({ code }: ServiceError) => code);
      expect(answer).toEqual(matched ?? status.RESOURCE_EXHAUSTED);
    } while (!isOver);
  }
  async function callOften() {
    try {
      for (let call = 0; call < GOOD_CALLS; call += 1) {
        const number = call % WILDCARDS;
        const answer = await good.shouldRateLimit('shop', [`path=/a/needle${number}x/b`, `path=yy end`, 'path=none']);
        expect(found(answer)).toEqual([1_000_000 + number, 2_000_000, undefined]);
      }
    } finally {
      isOver = true;
    }
  }
  await Promise.all([callOften(), ...ATTACKS.map(attack)]);
});
