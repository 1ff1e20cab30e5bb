import { join } from 'node:path';
import { RateLimitClient, requestMessage } from './clients/grpc-client';
import { NO_OUTCOMES, SOAK_KEYS, SoakClient } from './clients/soak-client';
import { RuleFolder } from './data/rule-folder';
import { WeirProcess } from './processes/weir-process';

const LIMIT = 4_000_000_000;
const RULES = {
  'shop.yaml': `domain: shop\ndescriptors: [{key: user, rate_limit: {unit: year, requests_per_unit: ${LIMIT}}}]\n`,
};
const HEAP_REPORT = join(__dirname, 'processes/report-heap.cjs');
const CONNECTIONS = 8;
const LONGEST_MESSAGE = 4 * 1_024 * 1_024;
/** An unknown field with a length of four bytes, which the service skips: the texts of a request are limited to less. */
const UNKNOWN_FIELD = 15;

export type SoakResult = Awaited<ReturnType<typeof soak>>;

/** Sends calls to the built service with the memory store in equal parts, and measures it after each part. */
export async function soak(options: { readonly calls: number; readonly parts: number; readonly random: () => number }) {
  await using rules = await RuleFolder.with(RULES);
  await using weir = await WeirProcess.start({
    env: {
      ...rules.env,
      DISABLE_STATS: 'true',
      // Calls are in flight for a while, so that they can be cancelled then.
      KVSTORE_PIPELINE_WINDOW: '1ms',
      NODE_OPTIONS: `--require ${HEAP_REPORT}`,
    },
  });
  const outcomes = { ...NO_OUTCOMES };
  const progress = { port: weir.ports.grpc, random: options.random, outcomes, calls: 0 };
  const clients = Array.from({ length: CONNECTIONS }, () => new SoakClient(progress));
  try {
    const measurements = [];
    for (let part = 1; part <= options.parts; part += 1) {
      progress.calls = Math.round((options.calls * part) / options.parts);
      await Promise.all(clients.map((client) => client.run()));
      measurements.push(await measure(weir, part));
    }
    const statistics = await weir.statistics();
    const message = longestMessage();
    const uploads = [];
    for (const client of clients) uploads.push(await client.upload(message));
    return {
      outcomes,
      measurements,
      /** After the last call, with all connections open. */
      connections: statistics.get('ratelimit_server.grpc.connections')!,
      /** Statistics of the rule, and the counts in the store. */
      hits: statistics.get('ratelimit.service.rate_limit.shop.user.total_hits')!,
      counted: await countsOf(weir),
      /** The gRPC status of a message of 4 MiB on each connection, and its connection window after a WINDOW_UPDATE. */
      uploads,
      /** Those that are not 0. */
      rejections: new Map(
        [...statistics].filter(([name, value]) => name.startsWith('ratelimit_server.http2.') && value > 0),
      ),
    };
  } finally {
    for (const client of clients) client.close();
  }
}

/** A valid request of 4 MiB. */
function longestMessage(): Buffer {
  const request = requestMessage('other', ['user=a']);
  const head = Buffer.from([(UNKNOWN_FIELD << 3) | 2, 0, 0, 0, 0]);
  const length = LONGEST_MESSAGE - request.length - head.length;
  for (let byte = 0; byte < 4; byte += 1) head[1 + byte] = ((length >>> (7 * byte)) & 0x7f) | (byte < 3 ? 0x80 : 0);
  return Buffer.concat([request, head, Buffer.alloc(length)]);
}

/** The service may still be working on calls that were cancelled last. */
async function measure(weir: WeirProcess, part: number) {
  const statistics = await weir.until('no open call', async () => {
    const now = await weir.statistics();
    return now.get('ratelimit_server.grpc.open_calls') === 0 && now;
  });
  weir.signal('SIGUSR2');
  const line = await weir.line(new RegExp(`^heap report ${part}: `));
  return {
    /** Bytes after all garbage was collected. */
    heap: Number(line.split(' ')[3]),
    openCalls: statistics.get('ratelimit_server.grpc.open_calls')!,
    heldBytes: statistics.get('ratelimit_server.grpc.held_bytes')!,
  };
}

/** The sum of the counters in the store. */
async function countsOf(weir: WeirProcess): Promise<number> {
  using client = new RateLimitClient(weir.grpcAddress);
  let sum = 0;
  for (const key of SOAK_KEYS) {
    const { statuses } = await client.shouldRateLimit('shop', [`user=${key}`]);
    // Without the hit of this call.
    sum += LIMIT - statuses[0]!.limitRemaining - 1;
  }
  return sum;
}
