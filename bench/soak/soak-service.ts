import { setTimeout as sleep } from 'node:timers/promises';
import { RuleFolder } from '../../test/support/data/rule-folder';
import { RedisProcess } from '../../test/support/processes/redis/redis-process';
import { WeirProcess } from '../../test/support/processes/weir-process';
import { HEAP_REPORT, sizeOfHeap } from '../suite/measure/memory';
import { Generator } from '../suite/load/generator';
import { describeMachine } from '../suite/processes/machine';
import { PLACEHOLDER, protobufMessage, withDigits } from '../suite/scenarios/messages';
import { RULE_FILE } from '../suite/scenarios/rules';
import { Disturbances } from './disturbances';
import { Model } from './model';
import { Outages } from './outages';
import { BLOCKED, COUNTED, rulesOf } from './rules';
import type { SoakOptions, SoakReport, SoakSample } from './soak-report';
import { storedCounts } from './stored-counts';
import { trendOf } from './trend';

const CONNECTIONS = 8;
const OUTSTANDING = 32;
/** Milliseconds in which all calls in flight have to end. */
const DRAIN = 120_000;
/** Of saturation. */
const SHARE = 0.5;
/** With these, a killed server has lost no count that it had replied with. */
const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'no'];
const SETTINGS = {
  DISABLE_STATS: 'true',
  BACKEND_TYPE: 'kvstore',
  KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION: 'true',
  LOCAL_CACHE_SIZE_IN_BYTES: String(1_024 * 1_024),
  NODE_OPTIONS: `--require ${HEAP_REPORT}`,
} as const;

/** Runs the service with Redis under an open loop, with disturbances at regular intervals, and reports what that did to it. */
export async function soakService(options: SoakOptions, onSample: (sample: SoakSample) => void): Promise<SoakReport> {
  const { seconds, every } = options;
  await using redis = await RedisProcess.start({ directives: DURABLE });
  await using rules = await RuleFolder.with({ [RULE_FILE]: rulesOf(0) });
  await using weir = await WeirProcess.start({ env: { ...rules.env, ...SETTINGS, KVSTORE_URL: redis.address } });
  const model = new Model(Math.ceil(seconds / every.turnover) + 1);
  const outages = new Outages();
  const template = protobufMessage([COUNTED, BLOCKED].map((key) => ({ key, value: `v-${PLACEHOLDER}` })));
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
    let [reloads, connections] = [0, CONNECTIONS];
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
    disturbances.each(every.turnover, async () => model.turnOver());
    disturbances.each(every.connection, async () => {
      connections += 1;
      await generator.replaceOldestConnection();
    });
    disturbances.eachAlone(every.restart, () => restart(redis, weir, options.away, outages));
    disturbances.eachAlone(every.sample, async () => {
      await generator.stop(DRAIN);
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
    const contradictions = model.contradictions(await storedCounts(redis.control));
    return {
      date: new Date().toISOString().slice(0, 10),
      machine: describeMachine(),
      seconds,
      paces,
      calls: { sent, answered: codes.reduce((sum, each) => sum + each, 0), failed, unanswered },
      values: model.values,
      malformed: model.malformed,
      wrongCounts: contradictions.length,
      firstWrong: contradictions[0],
      failedWhileAway: failed - outages.failedOutside,
      failedOtherwise: outages.failedOutside,
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
  const [answered, begun] = [generator.answered, performance.now()];
  generator.closed(OUTSTANDING);
  await sleep(milliseconds);
  // On a busy machine, a short loop may be over before the first answers.
  while (generator.answered - answered < CONNECTIONS * OUTSTANDING) await sleep(milliseconds);
  const perSecond = ((generator.answered - answered) * 1_000) / (performance.now() - begun);
  await generator.stop(DRAIN);
  return perSecond;
}

/** The store is away until the service has a connection to it again. */
async function restart(redis: RedisProcess, weir: WeirProcess, away: number, outages: Outages): Promise<void> {
  outages.begin(performance.now());
  await redis.crash();
  await weir.until('the service has noticed', async () => !(await weir.http('/healthcheck')).ok);
  await sleep(away);
  await redis.run();
  await weir.until('the service has reached the store again', async () => (await weir.http('/healthcheck')).ok);
  outages.end(performance.now());
}

async function loadsOf(weir: WeirProcess): Promise<number> {
  return (await weir.statistics()).get('ratelimit.service.config_load_success') ?? 0;
}
