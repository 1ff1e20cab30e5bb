import type { TestScheduler } from 'rxjs/testing';
import { DEFAULT_OPTIONS, type LimiterOptions } from '../../src/limiter/options';
import { Limiter } from '../../src/limiter/limiter';
import { LocalCounts } from '../../src/limiter/local-counts';
import type { Descriptor } from '../../src/limiter/request';
import { CODE_NAMES } from '../../src/limiter/verdict';
import type { FailurePolicy } from '../../src/rules/rule-config';
import { Statistics } from '../../src/statistics/statistics';
import { decisions } from '../../src/streams/decisions';
import { ServerState } from '../../src/streams/server-state';
import { request } from '../../test/support/data/requests';
import { limit, rulesetOf } from '../../test/support/data/rules';
import { marbles } from './marbles';
import { type ScriptedLane, storeOf } from './scripted-lanes';

type Policies = Readonly<Record<string, FailurePolicy>>;

function rulesWith(policies: Policies) {
  const [k, s] = [policies['k'], policies['s']];
  return rulesetOf(
    'shop',
    { key: 'k', rateLimit: limit(10, 'MINUTE'), onStoreFailure: k },
    { key: 's', rateLimit: limit(10, 'SECOND'), onStoreFailure: s },
    { key: 'none', rateLimit: limit(0, 'MINUTE') },
    { key: 'day', rateLimit: limit(10, 'DAY', { calendar: { timeZone: 'Asia/Tokyo', startsOn: 1 } }) },
    { key: 'shadow', shadowMode: true, rateLimit: limit(10, 'MINUTE') },
    { key: 'busy', rateLimit: { ...limit(1_000_000, 'HOUR'), lease: true } },
    { key: 'pair', rateLimits: [limit(10, 'MINUTE'), limit(3, 'HOUR')] },
  );
}

export interface PathOptions extends Partial<LimiterOptions> {
  readonly onStoreFailure: FailurePolicy;
  /** STORE_DECISION_TIMEOUT */
  readonly timeout?: number;
  /** Its default for calls that only limits with a policy count. */
  readonly byPolicy?: number;
  /** `on_store_failure` of the rules k and s. */
  readonly policies?: Policies;
  /** STORE_FAILURE_LOCAL_SHARE */
  readonly share?: number;
  /** STORE_FAILURE_RECONCILE */
  readonly reconciles?: boolean;
  /** STORE_BREAKER_FAILURES */
  readonly failures?: number;
}

/** A decision path whose outcomes are written as `time: code remaining …`, or the code of the error. */
export function decisionPath(
  laneOf: (key: string) => ScriptedLane,
  scheduler: TestScheduler,
  { timeout, byPolicy = timeout, policies = {}, share = 1, reconciles = true, failures = 0, ...more }: PathOptions,
) {
  const ruleset = rulesWith(policies);
  const statistics = new Statistics(10);
  const counters = storeOf(({ key }) => {
    const lane = laneOf(key.split('_')[2] ?? '');
    if (failures > 0) lane.server ??= new ServerState({ name: { server: 'of the test' }, scheduler, failures });
    return lane;
  });
  const dropped = statistics.counter('ratelimit.store.dropped_hits');
  const local = new LocalCounts({
    share: () => share,
    reconciles,
    serverOf: (operation) => counters.laneOf(operation),
    dropped,
  });
  const limiter = new Limiter({ ...DEFAULT_OPTIONS, local, ...more }, statistics);
  const { decide, windows$ } = decisions({
    ...{
      limiter,
      local,
      leases: more.leaseTable,
      counters,
      statistics,
      scheduler,
      timeouts: { ofCalls: timeout, byPolicy },
    },
    ruleset: () => ruleset,
    onInternalError: (error) => {
      throw error;
    },
  });
  windows$.subscribe();
  const outcomes: string[] = [];
  const headers: string[] = [];
  /** @param timeToAnswer in milliseconds */
  function call(descriptors: readonly (string | Descriptor)[], timeToAnswer?: number) {
    return decide(request('shop', descriptors), {
      timeToAnswer,
      verdict: ({ overallCode, statuses, responseHeaders }) => {
        const left = statuses.map(({ limitRemaining }) => limitRemaining);
        outcomes.push(`${scheduler.now()}: ${[CODE_NAMES[overallCode], ...left].join(' ')}`);
        headers.push(...responseHeaders.map(({ key, value }) => `${key}: ${value}`));
      },
      error: ({ code }) => outcomes.push(`${scheduler.now()}: ${code}`),
    });
  }
  /** The statistics that are not 0, without the beginnings of their names. */
  function moved() {
    const moving = [...statistics.entries()].filter(([name, value]) => value > 0 && !name.includes('pipeline'));
    return Object.fromEntries(moving.map(([name, value]) => [name.replace(/.*?rate_limit\.|ratelimit\./, ''), value]));
  }
  return { call, limiter, local, outcomes, headers, moved };
}

export type Path = ReturnType<typeof decisionPath>;
/** What happens at each millisecond. */
type Steps = (path: Path) => Readonly<Record<number, () => unknown>>;

/** Plays steps on a decision path with one lane, or with lanes by the values of calls, in virtual time. */
export function play(
  lanes: ScriptedLane | ((value: string) => ScriptedLane),
  options: PathOptions,
  steps: Steps,
): Path {
  return marbles(({ flush }, scheduler) => {
    const path = decisionPath(typeof lanes === 'function' ? lanes : () => lanes, scheduler, options);
    for (const [time, step] of Object.entries(steps(path))) scheduler.schedule(step, Number(time));
    flush();
    return path;
  });
}

/** So many calls at once. */
export function times(count: number, call: () => unknown): () => unknown {
  return () => Array.from({ length: count }, call);
}
