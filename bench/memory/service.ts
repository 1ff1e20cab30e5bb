// npm run bench:memory-service: see README.md.
import { parseArgs } from 'node:util';
import { residentMemory } from '../../test/support/processes/process-memory';
import { sleep, startLoad } from '../suite/measure/decisions';
import { CpuTimes } from '../suite/processes/cpu-times';
import { Service } from '../suite/processes/service';
import { startStore } from '../suite/processes/stores';
import { LOADS } from '../suite/scenarios/loads';

const { values } = parseArgs({
  options: {
    /** Commands that start Node, such as `node --max-semi-space-size=8`, separated by commas. */
    nodes: { type: 'string', default: `${process.execPath},${process.execPath} --max-semi-space-size=8` },
    calls: { type: 'string', default: '400000' },
    rounds: { type: 'string', default: '3' },
  },
});
/** Milliseconds that a service without calls has for what is left of its start. */
const REST = 3_000;
const CALLS = Number(values.calls);
const TIMEOUT = 600_000;

interface Result {
  /** Resident memory in MiB. */
  readonly rest: number;
  readonly load: number;
  /** CPU time in µs. */
  readonly eachCall: number;
}

async function measure(node: readonly [string, ...string[]]): Promise<Result> {
  await using store = await startStore('redis');
  await using service = await Service.start(LOADS['10k-keys'], store.env, { node });
  await sleep(REST);
  const rest = residentMemory(service.pid);
  await using generator = await startLoad(LOADS['10k-keys'], [service]);
  const before = new CpuTimes().of([service.pid]);
  await generator.fill(CALLS, TIMEOUT);
  const load = residentMemory(service.pid);
  return { rest, load, eachCall: (new CpuTimes().of([service.pid]) - before) / CALLS };
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)]!;
}

async function main(): Promise<void> {
  const results = new Map(values.nodes.split(',').map((node) => [node, [] as Result[]]));
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const [node, rounds] of results) rounds.push(await measure(node.split(' ') as [string]));
  }
  process.stdout.write('| node | MiB at rest | after the calls | CPU of a call, µs |\n|---|---:|---:|---:|\n');
  for (const [node, rounds] of results) {
    const [rest, load, each] = (['rest', 'load', 'eachCall'] as const).map((name) =>
      median(rounds.map((one) => one[name])),
    );
    process.stdout.write(`| ${node} | ${rest!.toFixed(0)} | ${load!.toFixed(0)} | ${each!.toFixed(2)} |\n`);
  }
}

void main().then(() => process.exit());
