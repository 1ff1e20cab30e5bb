// A million calls, a tenth of them cancelled, against the built service: see README.md. Options: --calls, --parts, --seed.
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { seededRandom } from '../../test/grpc/http2/seeded-random';
import { type Measurement, soak } from '../../test/support/soak';

const { values: options } = parseArgs({
  options: {
    calls: { type: 'string', default: '1000000' },
    parts: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(randomInt(2 ** 32)) },
  },
});

function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}

function show({ sent, heap, buffers, resident, openCalls, heldBytes }: Measurement): void {
  console.log(
    `${sent} calls: ${mebibytes(heap)} MiB of heap and ${mebibytes(buffers)} MiB of buffers after garbage collection, ${mebibytes(resident)} MiB resident, ` +
      `${openCalls} open calls, ${heldBytes} bytes held`,
  );
}

async function main(): Promise<void> {
  console.log(`seed ${options.seed}`);
  const begun = performance.now();
  const random = seededRandom(options.seed);
  const result = await soak({ calls: Number(options.calls), parts: Number(options.parts), random }, show);
  const { answered, cancelled, expired, dropped, connectionsDropped } = result.outcomes;
  console.log(`${answered} answered, ${cancelled} cancelled before an answer, ${expired} past their deadline,`);
  console.log(`${dropped} in flight on ${connectionsDropped} connections that were dropped`);
  console.log(`${result.hits} total_hits, ${result.counted} counted in the store; ${result.connections} connections`);
  console.log(
    `4 MiB on each connection: ${result.uploads.map(({ status, window }) => `status ${status}, window ${window}`).join('; ')}`,
  );
  console.log(`rejections: ${JSON.stringify(Object.fromEntries(result.rejections))}`);
  console.log(`${((performance.now() - begun) / 1_000).toFixed(0)} s`);
}

void main();
