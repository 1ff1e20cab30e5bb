import { RedisProcess } from '../../../test/support/processes/redis/redis-process';
import { WeirProcess } from '../../../test/support/processes/weir-process';
import { type Latency, STEP, type Step } from '../load/interval';
import { Service } from '../processes/service';
import { DURABLE } from '../processes/stores';
import { LOADS } from '../scenarios/loads';
import { type Durations, FILL_TIMEOUT, saturate, sleep, startLoad } from './decisions';
import { type Calls, type Measured, measurePhase } from './phase';

const LOAD = LOADS['10k-keys'];
/** Of saturation. */
const SHARE = 0.5;
const RELOADS = 4;
/** Rules that change with each reload, in addition to those that the calls match. */
const CHANGING_RULES = 10_000;
/** Milliseconds for which the store is away. */
const AWAY = 1_000;

export type EventName = 'reload' | 'store-restart' | 'rolling-restart';

/** Something that happened during a measurement, in seconds from its beginning. */
export interface Moment {
  readonly at: number;
  readonly what: string;
}

/** A measurement of an open loop during which something happens. */
export interface EventResult {
  readonly event: EventName;
  /** Calls that were due per second. */
  readonly perSecond: number;
  readonly seconds: number;
  readonly calls: Calls;
  readonly returned: number;
  readonly latency: Latency;
  readonly moments: readonly Moment[];
  /** The failed calls by the time at which they were due, in seconds from the beginning; undefined when none failed. */
  readonly failures?: { readonly first: number; readonly last: number } | undefined;
  readonly timeline: readonly Step[];
}

export interface EventOptions {
  readonly durations: Durations;
  readonly settings: Readonly<Record<string, string>>;
}

export const EVENTS: Readonly<Record<EventName, (options: EventOptions) => Promise<EventResult>>> = {
  reload: async ({ durations, settings }) => {
    await using redis = await RedisProcess.start();
    await using service = await Service.start(LOAD, {
      KVSTORE_URL: redis.address,
      BACKEND_TYPE: 'kvstore',
      ...settings,
    });
    return await during('reload', [service], durations, async (moment) => {
      for (let reload = 1; reload <= RELOADS; reload += 1) {
        await sleep(durations.measure / 2);
        moment('rules written');
        await service.rules.write('changing.yaml', changingRules(reload));
        await service.weir.until(`reload ${reload}`, async () => (await loads(service.weir)) > reload);
        moment('rules active');
      }
    });
  },
  'store-restart': async ({ durations, settings }) => {
    await using redis = await RedisProcess.start({ directives: DURABLE });
    await using service = await Service.start(LOAD, {
      KVSTORE_URL: redis.address,
      BACKEND_TYPE: 'kvstore',
      ...settings,
    });
    return await during('store-restart', [service], durations, async (moment) => {
      await sleep(durations.measure);
      moment('store killed');
      await redis.crash();
      await sleep(AWAY);
      await redis.run();
      moment('store back');
    });
  },
  'rolling-restart': async ({ durations, settings }) => {
    await using redis = await RedisProcess.start();
    const env = { KVSTORE_URL: redis.address, BACKEND_TYPE: 'kvstore', ...settings };
    await using first = await Service.start(LOAD, env);
    await using second = await Service.start(LOAD, env);
    const replacements: WeirProcess[] = [];
    try {
      return await during('rolling-restart', [first, second], durations, async (moment) => {
        for (const [index, service] of [first, second].entries()) {
          await sleep(durations.measure);
          moment(`SIGTERM to instance ${index + 1}`);
          service.weir.signal('SIGTERM');
          const code = await service.weir.exited;
          if (code !== 0) throw new Error(`the service exited with code ${code}`);
          moment(`instance ${index + 1} has exited`);
          replacements.push(
            await WeirProcess.start({
              env: { ...service.env, GRPC_PORT: String(service.weir.ports.grpc) },
            }),
          );
          moment(`instance ${index + 1} serves again`);
        }
      });
    } finally {
      for (const replacement of replacements) await replacement[Symbol.asyncDispose]();
    }
  },
};

/** Measures an open loop until a while after the script has ended. */
async function during(
  event: EventName,
  services: readonly Service[],
  durations: Durations,
  script: (moment: (what: string) => void) => Promise<void>,
): Promise<EventResult> {
  await using generator = await startLoad(LOAD, services);
  const measured: Measured = { generator, expected: LOAD.expected };
  await generator.fill(durations.warmUpCalls, FILL_TIMEOUT);
  const saturation = await saturate(measured, durations);
  const perSecond = saturation.perSecond * SHARE;
  await generator.paced(perSecond);
  await sleep(durations.settle);
  const moments: Moment[] = [];
  const phase = await measurePhase(measured, async () => {
    const begun = performance.now();
    await script((what) => moments.push({ at: (performance.now() - begun) / 1_000, what }));
    await sleep(durations.measure);
  });
  await generator.stop();
  const { seconds, calls, returned, latency, timeline } = phase;
  return { event, perSecond, seconds, calls, returned, latency, moments, failures: failuresOf(timeline), timeline };
}

function failuresOf(timeline: readonly Step[]): EventResult['failures'] {
  const first = timeline.findIndex(({ failed }) => failed > 0);
  if (first < 0) return undefined;
  const last = timeline.findLastIndex(({ failed }) => failed > 0);
  return { first: (first * STEP) / 1_000, last: ((last + 1) * STEP) / 1_000 };
}

async function loads(weir: WeirProcess): Promise<number> {
  return (await weir.statistics()).get('ratelimit.service.config_load_success') ?? 0;
}

function changingRules(version: number): string {
  const rules = Array.from(
    { length: CHANGING_RULES },
    (_, at) => `  - key: user\n    value: u${at}\n    rate_limit: { unit: hour, requests_per_unit: ${at + version} }\n`,
  );
  return `domain: changing\ndescriptors:\n${rules.join('')}`;
}
