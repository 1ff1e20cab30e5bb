// npm run bench:peers: see README.md.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { residentMemory } from '../../test/support/processes/process-memory';
import { FILL_TIMEOUT, pace, sleep, startLoad } from '../suite/measure/decisions';
import type { Measured } from '../suite/measure/phase';
import { Service } from '../suite/processes/service';
import { startStore } from '../suite/processes/stores';
import { LOADS } from '../suite/scenarios/loads';

const { values } = parseArgs({
  options: {
    peers: { type: 'string', default: '100' },
    /** What all answers are full of; default: one peer has one kind, the next one another. */
    only: { type: 'string' },
    /** Calls per second. */
    rate: { type: 'string', default: '2000' },
    /** Seconds of each measurement. */
    seconds: { type: 'string', default: '10' },
    pairs: { type: 'string', default: '5' },
    /** The folder of another build. */
    dist: { type: 'string' },
  },
});
const [PEERS, RATE, SECONDS] = [values.peers, values.rate, values.seconds].map(Number) as [number, number, number];
const DURATIONS = { settle: 1_000, measure: SECONDS * 1_000, warmUp: 0, warmUpCalls: 0 };
const WARM_UP_CALLS = 100_000;
/** Milliseconds between two looks at the fleet, of which a page makes one in five seconds. */
const LOOK_INTERVAL = 1_000;
const LOAD = LOADS['10k-keys'];

interface Running extends Measured {
  readonly weir: Service['weir'];
}

/** The p99 of decisions in ms and the largest resident memory in MiB, while a viewer looks at the fleet. */
async function measure({ weir, ...measured }: Running): Promise<readonly [p99: number, memory: number]> {
  let isOver = false;
  let memory = 0;
  const looking = (async () => {
    while (!isOver) {
      await weir.debug('/api/fleet');
      await sleep(LOOK_INTERVAL);
      memory = Math.max(memory, residentMemory(weir.pid!));
    }
  })();
  const { latency } = await pace(measured, RATE, DURATIONS);
  isOver = true;
  await looking;
  return [latency.p99, memory];
}

/** A process of peers, at addresses of the loopback interface. */
async function startPeers() {
  const hook = join(__dirname, '../../test/support/processes/typescript-hook.cjs');
  const args = ['--require', hook, join(__dirname, 'peers-process.ts'), values.only ?? ''];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  process.on('exit', () => child.kill());
  const [port] = (await once(createInterface(child.stdout), 'line')) as [string];
  return Array.from({ length: PEERS }, (_, index) => `127.0.0.${index + 1}:${port}`).join();
}

async function main(): Promise<void> {
  const peers = await startPeers();
  await using store = await startStore('memory');
  async function start(settings: Readonly<Record<string, string>>) {
    const service = await Service.start(LOAD, { ...store.env, ...settings }, values.dist === undefined ? {} : values);
    const generator = await startLoad(LOAD, [service]);
    await generator.fill(WARM_UP_CALLS, FILL_TIMEOUT);
    const running = { weir: service.weir, generator, expected: LOAD.expected, servicePids: [service.pid], store };
    return { running, service, generator };
  }
  const both = [await start({}), await start({ OPERATOR_PEERS: peers })];
  process.stdout.write('| pair | p99 alone, ms | p99 with peers, ms | MiB alone | MiB with peers |\n');
  process.stdout.write('|---|---:|---:|---:|---:|\n');
  for (let pair = 1; pair <= Number(values.pairs); pair += 1) {
    const measured: (readonly [number, number])[] = [];
    for (const { running } of both) measured.push(await measure(running));
    const [[p99, memory], [otherP99, otherMemory]] = measured as [(typeof measured)[0], (typeof measured)[0]];
    const cells = [p99.toFixed(1), otherP99.toFixed(1), memory.toFixed(0), otherMemory.toFixed(0)];
    process.stdout.write(`| ${pair} | ${cells.join(' | ')} |\n`);
  }
  for (const { service, generator } of both) {
    await generator[Symbol.asyncDispose]();
    await service[Symbol.asyncDispose]();
  }
}

void main().then(() => process.exit());
