import { parseArgs } from 'node:util';
import { FILL_TIMEOUT, saturate, sleep, startLoad } from '../suite/measure/decisions';
import { type Measured, type Phase, measurePhase } from '../suite/measure/phase';
import { Service } from '../suite/processes/service';
import { startStore } from '../suite/processes/stores';
import { LOADS, type LoadName } from '../suite/scenarios/loads';
import type { StoreName } from '../suite/scenarios/stores';

const { values: options } = parseArgs({
  options: {
    store: { type: 'string', default: 'redis' },
    load: { type: 'string', default: '10k-keys' },
    /** Of saturation. */
    share: { type: 'string', default: '0.75' },
    /** Calls per second instead of a share, to compare builds. */
    rate: { type: 'string' },
    /** Milliseconds for which the service is stopped. */
    pause: { type: 'string', default: '500' },
    seconds: { type: 'string', default: '6' },
  },
});
const DURATIONS = { warmUpCalls: 60_000, warmUp: 1_000, measure: 2_000, settle: 500 };

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Columns: CPU time per decision as a ratio to that at saturation, latencies, calls in flight at the end. */
function show(title: string, { cpu, latency, calls, perSecond }: Phase, saturation: Phase): void {
  const cost = `${cpu.service!.toFixed(1)} µs × ${(cpu.service! / saturation.cpu.service!).toFixed(2)}`;
  const waiting = `p50 ${latency.p50.toFixed(1)} ms, p99 ${latency.p99.toFixed(1)} ms, ${calls.inFlight} in flight`;
  say(`${title.padEnd(28)} ${perSecond.toFixed(0)}/s, ${cost}, ${waiting}`);
}

/** An open loop in which the service is stopped for a moment, and then has more calls waiting than it can answer at once. */
async function run(): Promise<void> {
  const load = LOADS[options.load as LoadName];
  await using store = await startStore(options.store as StoreName);
  await using service = await Service.start(load, store.env);
  await using generator = await startLoad(load, [service]);
  const measured: Measured = { generator, expected: load.expected, servicePids: [service.pid], store };
  await generator.fill(DURATIONS.warmUpCalls, FILL_TIMEOUT);
  const saturation = await saturate(measured, DURATIONS);
  show('saturation', saturation, saturation);
  await generator.paced(Number(options.rate ?? saturation.perSecond * Number(options.share)));
  await sleep(DURATIONS.settle);
  show('before the pause', await measurePhase(measured, 1_000), saturation);
  process.kill(service.pid, 'SIGSTOP');
  await sleep(Number(options.pause));
  process.kill(service.pid, 'SIGCONT');
  for (let second = 1; second <= Number(options.seconds); second += 1) {
    show(`second ${second} after the pause`, await measurePhase(measured, 1_000), saturation);
  }
  await generator.stop();
}

void run().then(() => process.exit(0));
