import type { FailurePolicy } from '../rules/rule-config';
import type { Counter } from '../statistics/counter';
import type { Statistics } from '../statistics/statistics';
import type { CurrentConfig } from '../streams/config';
import type { Latest } from '../streams/latest';
import type { Phase, Readiness } from '../streams/readiness';
import { type CountedServer, countedServers } from '../streams/server-views';
import { counted } from '../text/counted';
import { shortened } from '../text/excerpt';
import type {
  HealthPart,
  HealthState,
  ListedHealth,
  RulesHealth,
  ServerHealth,
  StoreHealth,
  WorkerInfo,
} from './live-answers';

/** A server that needs more milliseconds on average is slow: a proxy waits 20 ms for a decision by default. */
const SLOW = 10;

/** A cluster may have many. */
const MOST_SERVERS = 64;

/** Where the counters are: BACKEND_TYPE, and what is known about it without calls. */
export interface StoreInUse {
  readonly kind: 'memory' | 'kvstore' | 'plaincache';
  /** As in {@link StoreHealth}. */
  readonly policy: FailurePolicy | null;
  /** Whether it is checked without calls: KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION. */
  readonly isChecked: boolean;
}

export interface HealthOptions {
  readonly readiness: Pick<Readiness, 'health' | 'checks'>;
  readonly config$: Latest<CurrentConfig>;
  readonly statistics: Statistics;
  readonly store: StoreInUse;
  readonly workers?: (() => readonly WorkerInfo[]) | undefined;
}

/** How the service is, in words that an operator understands at once, and what to do. */
export class HealthView {
  readonly #options: HealthOptions;
  readonly #growth = new RecentGrowth();

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  /** To be called every ten seconds: the rates of servers are those since the last call but one. */
  sample(): void {
    const servers = countedServers(this.#options.statistics);
    this.#growth.sample(servers.flatMap(({ requests, failed, time }) => [requests, failed, time]));
  }

  get health(): Omit<ListedHealth, 'instances' | 'state'> {
    const { health, checks } = this.#options.readiness;
    const degraded = checks.filter(({ isDegraded }) => isDegraded).map(({ name, note }) => `${name} ${note}`);
    return { ...health, degraded, store: this.#store(), rules: this.#rules(), process: this.#process() };
  }

  #process(): ListedHealth['process'] {
    const { readiness, workers } = this.#options;
    const { checks } = readiness;
    const [drains, opens] = ['draining', 'listeners'].map(
      (name) => checks.find((check) => check.name === name)?.failure,
    );
    const phase: Phase = drains !== undefined ? 'draining' : opens === undefined ? 'serving' : 'starting';
    if (phase === 'draining') {
      const todo = todoIn('other instances take its calls', 'operations.md#stopping');
      return { state: 'red', phase, text: 'draining: the process ends', todo };
    }
    if (phase === 'starting') {
      const text = `starting: ${readiness.health.unhealthy.join(', ')}`;
      return { state: 'amber', phase, text, todo: todoIn('look at the log', 'operations.md#health-and-readiness') };
    }
    const all = workers?.() ?? [];
    const ready = all.filter(({ isServing, isResponsive }) => isServing && isResponsive).length;
    if (ready === all.length) {
      return {
        state: 'green',
        phase,
        text: all.length === 0 ? 'serving' : `serving with ${all.length} workers`,
        todo: null,
      };
    }
    return {
      state: ready === 0 ? 'red' : 'amber',
      phase,
      text: `${ready} of ${counted(all.length, 'worker')} ready`,
      todo: todoIn(
        'look at the log for why workers end',
        `runbook.md#${ready === 0 ? 'weirnoworkers' : 'weirworkersdie'}`,
      ),
    };
  }

  #rules(): RulesHealth {
    const { config$, statistics } = this.#options;
    const { loaded, rejected } = config$.value;
    const isRejected = rejected !== undefined;
    if (loaded === undefined) {
      const text = isRejected ? 'no rules are active: those that were loaded were rejected' : 'no rules are active yet';
      const todo = todoIn('correct the rules, or where they are read from', 'runbook.md#weirwithoutrules');
      return { state: 'red', text, todo, version: null, age: null, isRejected };
    }
    const { ruleset, origin, at } = loaded;
    const known = { version: origin.version, age: secondsSince(at), isRejected };
    const rules = `${counted(ruleset.size, 'rule')}, loaded ${durationText(known.age)} ago`;
    if (rejected !== undefined) {
      const text = `newer rules were rejected ${durationText(secondsSince(rejected.at))} ago; the active ones: ${rules}`;
      return {
        state: 'amber',
        text,
        todo: todoIn('correct or roll back the rules', 'runbook.md#weiroldrules'),
        ...known,
      };
    }
    if (statistics.readGauge('ratelimit.xds.connected') === 0) {
      const text = `no stream to the management server, so that newer rules do not arrive; ${rules}`;
      const todo = todoIn('restore the management server or the network', 'runbook.md#weirxdsdisconnected');
      return { state: 'amber', text, todo, ...known };
    }
    return { state: 'green', text: rules, todo: null, ...known };
  }

  #store(): StoreHealth {
    const { readiness, statistics, store } = this.#options;
    const { kind, policy } = store;
    if (kind === 'memory') {
      return { state: 'green', text: 'counters in the memory of this instance', todo: null, policy: null, servers: [] };
    }
    const all = countedServers(statistics);
    const servers = all
      .map((server) => this.#server(server, all.length === 1))
      .sort((one, other) => badness(other.state) - badness(one.state));
    const failure = readiness.checks.find(({ name }) => name === 'store')?.failure;
    return { ...this.#storePart(servers, failure), policy, servers: servers.slice(0, MOST_SERVERS) };
  }

  /**
   * @param servers the worst first
   * @param failure why the check of the store fails, if it does
   */
  #storePart(servers: readonly ServerHealth[], failure: string | undefined): HealthPart {
    if (failure !== undefined) return { state: 'red', text: failure, todo: RESTORE };
    const [worst] = servers;
    if (worst === undefined) return this.#unusedStore();
    const { state, todo } = worst;
    const alike = servers.filter((server) => server.state === state).length;
    const others = alike > 1 ? ` and ${counted(alike - 1, 'other')} like it` : '';
    return { state, todo, text: `${worst.server}: ${worst.text}${others === '' ? '' : `;${others}`}` };
  }

  /** No call has needed it. */
  #unusedStore(): HealthPart {
    const { kind, isChecked } = this.#options.store;
    if (kind === 'kvstore' && !this.#isConnected) return { ...this.#away('no connection'), todo: RESTORE };
    const isKnown = kind === 'kvstore' || isChecked;
    if (isKnown) return { state: 'green', text: 'connected; no call has needed it yet', todo: null };
    return { state: 'unknown', text: 'not checked: no call has needed it yet', todo: CHECK };
  }

  /** Of Redis, idle connections are checked, too. */
  get #isConnected(): boolean {
    const pools = ['redis_pool', 'redis_per_second_pool'].map((name) => `ratelimit.${name}.cx_active`);
    return pools.every((name) => this.#options.statistics.readGauge(name) !== 0);
  }

  #server({ server, store, isOpen, ...counters }: CountedServer, isOnly: boolean): ServerHealth {
    const { seconds } = this.#growth;
    const [sent, failed, time] = [counters.requests, counters.failed, counters.time].map((counter) =>
      this.#growth.of(counter),
    ) as [number, number, number];
    const [requests, errors] = [sent / seconds, failed / seconds];
    const latency = sent > failed ? time / (sent - failed) : null;
    return {
      ...this.#serverPart({ requests, errors, latency, isOpen }, isOnly),
      ...{ server: shortened(server), store, isOpen, requests, errors, latency },
    };
  }

  #serverPart(
    { requests, errors, latency, isOpen }: Pick<ServerHealth, 'requests' | 'errors' | 'latency' | 'isOpen'>,
    isOnly: boolean,
  ): HealthPart {
    const { kind, isChecked } = this.#options.store;
    if (isOpen) return this.#away('it does not answer');
    if (requests > 0 && errors === requests) return this.#away('all requests fail');
    if (errors > 0) {
      const share = Math.max(1, Math.round((errors / requests) * 100));
      const todo = todoIn('look at the log for the reason', 'runbook.md#weirstoreerrors');
      return { state: 'amber', text: `${share} % of the requests fail`, todo };
    }
    if (latency !== null) {
      const text = `${Number(latency.toPrecision(2))} ms for a request on average`;
      if (latency <= SLOW) return { state: 'green', text: `answers: ${text}`, todo: null };
      const todo = todoIn('look at its CPU time, its slow log and the network', 'runbook.md#weirslowdecisions');
      return { state: 'amber', text: `slow: ${text}`, todo };
    }
    if (kind === 'kvstore' && !this.#isConnected) return this.#away('no connection');
    if (isChecked || (kind === 'kvstore' && isOnly)) {
      return { state: 'green', text: 'connected; no request in the last 10 s', todo: null };
    }
    return { state: 'unknown', text: 'not checked: no request in the last 10 s', todo: CHECK };
  }

  /** A server does not count. */
  #away(what: string): HealthPart {
    const { policy } = this.#options.store;
    const notLocal = policy === 'local' ? (this.#options.config$.value.loaded?.ruleset.notLocal.count ?? 0) : 0;
    const rest = notLocal === 0 ? '' : `, but calls for ${counted(notLocal, 'rule')} fail`;
    const text = `${what}: ${CONSEQUENCES[policy ?? 'none']}${rest}`;
    return { state: policy === null || policy === 'error' ? 'red' : 'amber', text, todo: RESTORE };
  }
}

/** What an away server means, by the policy in force. */
const CONSEQUENCES: Readonly<Record<FailurePolicy | 'none', string>> = {
  error: 'calls that need it fail (policy error)',
  allow: 'its limits do not apply (policy allow)',
  deny: 'what it counts is denied (policy deny)',
  local: 'each instance counts by itself (policy local)',
  none: 'its counters count as 0, so that its limits do not apply',
};

const RESTORE = todoIn('restore the store or the network to it', 'runbook.md#weirstoreaway');
const CHECK = todoIn(
  'a call shows how it is; KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION=true checks it without calls',
  'operations.md#health-and-readiness',
);

/** @param link below docs/ */
function todoIn(text: string, link: string): NonNullable<HealthPart['todo']> {
  return { text, link: `docs/${link}` };
}

const STATES: readonly HealthState[] = ['unknown', 'green', 'amber', 'red'];

function badness(state: HealthState): number {
  return STATES.indexOf(state);
}

/** The worst of several states; one that is not known says nothing about the others. */
export function worstOf(states: readonly HealthState[]): HealthState {
  return STATES[Math.max(0, ...states.map(badness))]!;
}

/** By how much counters have grown lately. */
class RecentGrowth {
  #before = new Sample([]);
  #last = this.#before;

  sample(counters: readonly Counter[]): void {
    this.#before = this.#last;
    this.#last = new Sample(counters);
  }

  /** Since the last sample but one. */
  of(counter: Counter): number {
    return counter.value - (this.#before.values.get(counter) ?? 0);
  }

  /** The time of it. */
  get seconds(): number {
    return Math.max(0.001, (performance.now() - this.#before.at) / 1000);
  }
}

class Sample {
  readonly at = performance.now();
  readonly values: ReadonlyMap<Counter, number>;

  constructor(counters: readonly Counter[]) {
    this.values = new Map(counters.map((counter) => [counter, counter.value]));
  }
}

function secondsSince(milliseconds: number): number {
  return Math.max(0, Math.round((Date.now() - milliseconds) / 1000));
}

/** A time in its largest unit: `12 s`, `5 min`, `3 h`, `40 d`. */
function durationText(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}
