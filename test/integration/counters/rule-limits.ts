import { firstValueFrom } from 'rxjs';
import type { LimiterOptions } from '../../../src/limiter/decision';
import { Code, type Verdict } from '../../../src/limiter/verdict';
import type { RateLimitConfig } from '../../../src/rules/rule-config';
import { unitByName } from '../../../src/rules/unit';
import { type KvstoreCounters, kvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { MemoryCounters } from '../../../src/sinks/counters/memory/memory-counters';
import type { Counters } from '../../../src/streams/ports/counters';
import type { descriptor } from '../../support/data/requests';
import { type RuleSketch, limit, rulesetOf } from '../../support/data/rules';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { instance, options } from '../kvstore/options';
import { modelOf } from './algorithm-models';
import { Service, clock } from './algorithm-scenarios';

/** Counters at the time of {@link clock}, for the tests of a file. */
export interface StoresAtClock {
  readonly memory: MemoryCounters;
  /** There while tests run. */
  readonly kvstore: () => KvstoreCounters;
  readonly redis: () => RedisProcess;
  /** That of the limits per second, if they have one. */
  readonly perSecond: () => RedisProcess;
}

/** Starts the stores before the tests of a file, and ends them after. */
export function storesAtClock({ hasPerSecond = false } = {}): StoresAtClock {
  const memory = new MemoryCounters({ maxKeys: 100_000, now: () => clock.now });
  let servers: readonly RedisProcess[] = [];
  let kvstore: KvstoreCounters;
  beforeAll(async () => {
    servers = await Promise.all(Array.from({ length: hasPerSecond ? 2 : 1 }, () => RedisProcess.start()));
    const [main, perSecond] = servers.map(({ address }) => instance(address));
    kvstore = kvstoreCounters({
      ...options(main!, { now: () => Math.round(clock.now * 1000) }),
      ...(perSecond !== undefined && { perSecond }),
    });
    await firstValueFrom(kvstore.ready$);
  });
  afterAll(async () => {
    await Promise.all([kvstore.close(), memory.close()]);
    await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
  });
  return { memory, kvstore: () => kvstore, redis: () => servers[0]!, perSecond: () => servers[1]! };
}

/** Code, remaining, seconds until the reset and requests per unit of what is shown. */
export type Answer = readonly [isAllowed: boolean, remaining: number, reset: number, requestsPerUnit: number];

export function answerOf({ statuses: [status] }: Verdict): Answer {
  const { code, limitRemaining, secondsUntilReset, currentLimit } = status!;
  return [code === Code.OK, limitRemaining, secondsUntilReset!, currentLimit!.requestsPerUnit];
}

/** What a limit answers to a call, in whole numbers. */
export type Model = (hits: number, now: number) => Answer;

/** @param isWhole whether a call counts at a fixed window with all of its hits or with none, as it does with the other algorithms */
export function modelOfLimit(config: RateLimitConfig, isWhole: boolean): Model {
  const { algorithm, requestsPerUnit, burst, unit, unitMultiplier } = config;
  const windowSeconds = unitByName(unit!)!.seconds * unitMultiplier;
  if (algorithm !== undefined) {
    const model = modelOf({ name: algorithm, requestsPerUnit, windowSeconds, burst });
    return (hits, now) => {
      const { isAllowed, remaining, secondsUntilReset } = model.decide(BigInt(hits), BigInt(now) * 1000n);
      return [isAllowed, remaining, secondsUntilReset, requestsPerUnit];
    };
  }
  let [start, count] = [0, 0];
  return (hits, now) => {
    const seconds = Math.floor(now / 1000);
    const begun = seconds - (seconds % windowSeconds);
    if (begun !== start) [start, count] = [begun, 0];
    const isAllowed = hits < 0 || (isWhole && hits === 0) || count + hits <= requestsPerUnit;
    if (isAllowed || !isWhole) count = Math.max(0, count + hits);
    return [isAllowed, Math.max(0, requestsPerUnit - count), start + windowSeconds - seconds, requestsPerUnit];
  };
}

export function mostRestrictive(answers: readonly Answer[]): Answer {
  const denied = answers.filter(([isAllowed]) => !isAllowed);
  if (denied.length > 0) return denied.toSorted((one, other) => other[2] - one[2])[0]!;
  return answers.toSorted((one, other) => one[1] - other[1])[0]!;
}

export const SHORT = limit(2, 'SECOND', { name: 'short' });
export const LONG = limit(5, 'MINUTE', { unitMultiplier: 5, name: 'long' });
const LIMITS = [SHORT, LONG];
const HEADERS = { responseHeaders: { limit: 'limit', remaining: 'remaining', reset: 'reset' } };

let domains = 0;

/** A domain that no other test uses. */
export function freshDomain(): string {
  domains += 1;
  return `limits-${domains}`;
}

/** A request, with the descriptors as text, or a pause in seconds. */
type Step = string | number | ReturnType<typeof descriptor>;

/**
 * Sends requests at the beginning of five minutes, to a rule for the key `k` of 2 per second and 5 per five minutes, unless it says
 * otherwise. The rule for the key `other` replaces the limit per second.
 */
export async function playRule(
  store: Counters,
  { rule = {}, limiter = {} }: { readonly rule?: Partial<RuleSketch>; readonly limiter?: Partial<LimiterOptions> },
  steps: readonly Step[],
) {
  const domain = freshDomain();
  const other = { key: 'other', rateLimit: limit(9, 'MINUTE', { replaces: ['short'] }) };
  const ruleset = rulesetOf(domain, { key: 'k', rateLimits: LIMITS, ...rule }, other);
  using service = new Service(ruleset, store, { ...HEADERS, ...limiter });
  clock.now += 300_000 - (clock.now % 300_000);
  const verdicts: Verdict[] = [];
  for (const step of steps) {
    if (typeof step === 'number') clock.now += step * 1000;
    else verdicts.push(await service.decide(domain, typeof step === 'string' ? step.split(' ') : [step]));
  }
  const statistics = [...service.statistics.entries()].flatMap(([name, value]) => {
    const [, short] = /^ratelimit\.service\.rate_limit\.[^.]+\.(k.*)$/.exec(name) ?? [];
    return short === undefined || value === 0 ? [] : [[short, value] as const];
  });
  return { verdicts, answers: verdicts.map(answerOf), statistics: Object.fromEntries(statistics) };
}
