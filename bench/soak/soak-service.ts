import { setTimeout as sleep } from 'node:timers/promises';
import { RuleFolder } from '../../test/support/data/rule-folder';
import { WeirProcess } from '../../test/support/processes/weir-process';
import { HEAP_REPORT, sizeOfHeap } from '../suite/measure/memory';
import { Generator } from '../suite/load/generator';
import { describeMachine } from '../suite/processes/machine';
import { protobufMessage, valueText, withDigits } from '../suite/scenarios/messages';
import { RULE_FILE } from '../suite/scenarios/loads';
import { Disturbances, Interruptions, Outages } from './disturbances';
import { BLOCKED, COUNTED, Model, rulesOf } from './model';
import { type SoakOptions, type SoakReport, type SoakSample, type SoakSetup, trendOf } from './report';
import { startSoakStore } from './stores';

const CONNECTIONS = 8;
const OUTSTANDING = 32;
/** Milliseconds in which all calls in flight have to end. */
const DRAIN = 120_000;
/** Of saturation. */
const SHARE = 0.5;

/**
 * Runs the service under an open loop with disturbances at regular intervals, and reports what that did to it.
 *
 * @param onSample is called with each measurement of the memory
 */
export async function soakService(
  setup: SoakSetup,
  options: SoakOptions,
  onSample: (sample: SoakSample) => void,
): Promise<SoakReport> {
  const { seconds, every, away } = options;
  await using store = await startSoakStore(setup.store, options.values);
  await using rules = await RuleFolder.with({ [RULE_FILE]: rulesOf(0) });
  await using weir = await WeirProcess.start({
    env: {
      ...rules.env,
      ...store.env,
      DISABLE_STATS: 'true',
      WORKERS: String(setup.workers),
      NODE_OPTIONS: `--require ${HEAP_REPORT}`,
    },
  });
  const model = new Model(Math.ceil(seconds / every.turnover) + 1, options.values);
  const interruptions = new Interruptions(weir, store, { workers: setup.workers, away });
  const outages = new Outages();
  const template = protobufMessage([COUNTED, BLOCKED].map((key) => ({ key, value: valueText(0) })));
  const generator = new Generator({
    protocol: 'grpc',
    targets: [{ host: '127.0.0.1', port: weir.ports.grpc }],
    connections: CONNECTIONS,
    messages: withDigits(template, (call) => model.send(call)),
    onResponse: (call, bytes, start, end) => model.respond(call, bytes.subarray(start, end)),
    onFailed: (call, due) => {
      model.fail(call);
      outages.fail(due, performance.now());
    },
  });
  try {
    await generator.open();
    await saturate(generator, options.warmUp);
    generator.mark();
    const begun = performance.now();
    const samples: SoakSample[] = [];
    const paces: number[] = [];
    const disturbances = new Disturbances();
    let [reloads, connections] = [0, 0];
    async function pace(): Promise<void> {
      paces.push((await saturate(generator, options.saturate)) * SHARE);
      generator.paced(paces.at(-1)!);
    }
    await pace();
    disturbances.each(every.reload, async () => {
      await rules.write(RULE_FILE, rulesOf(reloads + 1));
      // A change that follows too soon would be loaded together with this one.
      await weir.until('the rules are loaded', async () => (await loadsOf(weir)) > reloads + 1);
      reloads += 1;
    });
    // By turns with the pauses, in which the store is asked for the counts of former values.
    disturbances.eachAlone(every.turnover, async () => model.turnOver());
    disturbances.each(every.connection, async () => {
      connections += 1;
      await generator.replaceOldestConnection();
    });
    if (interruptions.isPossible) {
      disturbances.eachAlone(every.interruption, async () => {
        outages.begin(performance.now());
        await interruptions.next();
        outages.end(performance.now());
      });
    }
    disturbances.eachAlone(every.sample, async () => {
      await generator.stop(DRAIN);
      await store.retire(weir, model.firstOfGeneration);
      const { heap, resident } = await sizeOfHeap(weir);
      samples.push({ at: (performance.now() - begun) / 1_000, heap, resident });
      onSample(samples.at(-1)!);
      // Other programs may leave the service more or less than before.
      await pace();
    });
    await sleep(seconds * 1_000);
    await disturbances.end();
    await generator.stop(DRAIN);
    // There are answers after the last disturbance of each kind.
    await saturate(generator, options.saturate);
    const unanswered = await generator.stop(DRAIN);
    const { sent, codes, failed, latency } = generator.mark();
    const statistics = await weir.statistics();
    const contradictions = model.contradictions(await store.counts(weir, model.end));
    return {
      date: new Date().toISOString().slice(0, 10),
      machine: describeMachine(),
      setup,
      seconds,
      paces,
      calls: { sent, answered: codes.reduce((sum, each) => sum + each, 0), failed, unanswered },
      values: model.values,
      malformed: model.malformed,
      wrongCounts: contradictions.length,
      firstWrong: contradictions[0],
      failedInOutages: failed - outages.failedOutside,
      failedOtherwise: outages.failedOutside,
      storeRestarts: interruptions.storeRestarts,
      workersKilled: interruptions.workersKilled,
      outages: outages.relativeTo(begun),
      reloads,
      limitsSeen: [...model.limits].toSorted((one, other) => other - one),
      generations: model.generations,
      connections,
      openCalls: statistics.get('ratelimit_server.grpc.open_calls') ?? NaN,
      latency,
      samples,
      heap: trendOf(samples.map(({ at, heap }) => [at, heap])),
      resident: trendOf(samples.map(({ at, resident }) => [at, resident])),
    };
  } finally {
    generator.close();
  }
}

/** Answers per second of a closed loop. */
async function saturate(generator: Generator, milliseconds: number): Promise<number> {
  const [answered, begun] = [generator.answers(), performance.now()];
  generator.closed(OUTSTANDING);
  await sleep(milliseconds);
  // On a busy machine, a short loop may be over before the first answers.
  while (generator.answers() - answered < CONNECTIONS * OUTSTANDING) await sleep(milliseconds);
  const perSecond = ((generator.answers() - answered) * 1_000) / (performance.now() - begun);
  await generator.stop(DRAIN);
  return perSecond;
}

async function loadsOf(weir: WeirProcess): Promise<number> {
  return (await weir.statistics()).get('ratelimit.service.config_load_success') ?? 0;
}
