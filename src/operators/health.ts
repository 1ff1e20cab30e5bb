import type { FailurePolicy } from '../rules/rule-config';
import type { Statistics } from '../statistics/statistics';
import type { CurrentConfig } from '../streams/config';
import type { Latest } from '../streams/latest';
import type { Phase, Readiness } from '../streams/readiness';
import type { Trouble } from '../streams/server-report';
import type { ShownServer, ShownServers } from '../streams/server-views';
import { counted } from '../text/counted';
import { excerpt, shortened } from '../text/excerpt';
import { isoTime } from '../text/iso-time';
import type {
  HealthPart,
  HealthState,
  ListedHealth,
  ProcessHealth,
  RulesHealth,
  ServerHealth,
  StoreHealth,
  Timed,
  WorkerInfo,
} from './live-answers';

/** A cluster may have many. */
const MOST_SERVERS = 64;
/** Milliseconds over which rates of a server are. */
const RATES_OF = 10_000;
/** Characters of the reason of a fault. */
const REASON = 200;

/** Where the counters are. */
export interface StoreInUse {
  /** Whether they are outside of this instance. */
  readonly isShared: boolean;
  /** As in {@link StoreHealth}. */
  readonly policy: FailurePolicy | null;
}

export interface HealthOptions {
  readonly readiness: Pick<Readiness, 'health' | 'checks'>;
  readonly config$: Latest<CurrentConfig>;
  readonly statistics: Statistics;
  readonly store: StoreInUse;
  readonly servers: ShownServers;
  readonly workers?: (() => readonly WorkerInfo[]) | undefined;
}

/** How the service is, in words that an operator understands at once, and what to do. */
export class HealthView {
  readonly #options: HealthOptions;
  readonly #states = new Map<string, { readonly state: HealthState; readonly since: string }>();

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  get health(): Omit<ListedHealth, 'instances' | 'state'> {
    const { health, checks } = this.#options.readiness;
    const degraded = checks.filter(({ isDegraded }) => isDegraded).map(({ name, note }) => `${name} ${note}`);
    const store = this.#store();
    const [worst] = store.servers;
    return {
      ...{ ...health, degraded },
      store: this.timed('store', store, worst?.state === store.state ? worst.since : null),
      rules: this.timed('rules', this.#rules()),
      process: this.timed('process', this.#process()),
    };
  }

  /**
   * A part with the time at which its state began: the time at which it was seen first, where that is not known better.
   */
  timed<Part extends HealthPart>(name: string, part: Part, exact: string | null = null): Timed<Part> {
    const known = this.#states.get(name);
    const isSame = known?.state === part.state;
    const since = exact ?? (isSame ? known.since : new Date().toISOString());
    this.#states.set(name, { state: part.state, since });
    return { ...part, since };
  }

  #process(): ProcessHealth {
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
      const since = durationText(secondsSince(rejected.at));
      const text = `newer rules were rejected ${since} ago; the active ones: ${rules}`;
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
    const { readiness, store, servers: known } = this.#options;
    const { isShared, policy } = store;
    if (!isShared) {
      return { state: 'green', text: 'counters in the memory of this instance', todo: null, policy: null, servers: [] };
    }
    const servers = known.shown
      .map((server) => this.#server(server))
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
    if (worst === undefined) return this.#away('its servers are not known yet');
    const { state, todo } = worst;
    const alike = servers.filter((server) => server.state === state).length;
    const others = alike > 1 ? ` and ${counted(alike - 1, 'other')} like it` : '';
    return { state, todo, text: `${worst.server}: ${worst.text}${others === '' ? '' : `;${others}`}` };
  }

  #server(server: ShownServer): ServerHealth {
    const { condition, since, isHeldBack: isOpen, rates } = server;
    const { requests, failures: errors, latency } = rates;
    return {
      ...this.#serverPart(server),
      ...{ server: shortened(server.server), store: server.store ?? '', condition, since: isoTime(since / 1000) },
      ...{ isOpen, requests, errors, latency },
    };
  }

  #serverPart({ condition, since, troubleSince, reason, lastSuccess, rates }: ShownServer): HealthPart {
    const { requests, failures, latency } = rates;
    if (troubleSince !== undefined) {
      const why = condition === 'silent' || reason === undefined ? '' : ` (${excerpt(reason, REASON)})`;
      return this.#away(`${TROUBLES[condition as Trouble]} for ${durationText(secondsSince(troubleSince))}${why}`);
    }
    if (condition === 'unknown') {
      const when = lastSuccess === undefined ? 'no call has needed it yet' : 'no request in the last 10 s';
      return { state: 'unknown', text: `not checked: ${when}`, todo: CHECK };
    }
    // Before the server was in its condition, a fault may have made them fail.
    if (failures > 0 && Date.now() - since >= RATES_OF) {
      if (failures === requests) return this.#away('all requests fail');
      const share = Math.max(1, Math.round((failures / requests) * 100));
      const todo = todoIn('look at the log for the reason', 'runbook.md#weirstoreerrors');
      return { state: 'amber', text: `${share} % of the requests fail`, todo };
    }
    if (latency === null) return { state: 'green', text: 'connected; no request in the last 10 s', todo: null };
    const text = `${Number(latency.toPrecision(2))} ms for a request on average`;
    if (condition === 'answering') return { state: 'green', text: `answers: ${text}`, todo: null };
    const todo = todoIn('look at its CPU time, its slow log and the network', 'runbook.md#weirslowdecisions');
    return { state: 'amber', text: `slow for ${durationText(secondsSince(since))}: ${text}`, todo };
  }

  /** A server does not count. */
  #away(what: string): HealthPart {
    const { policy } = this.#options.store;
    const notLocal = policy === 'local' ? (this.#options.config$.value.loaded?.ruleset.notLocal.count ?? 0) : 0;
    const rest = notLocal === 0 ? '' : `, but calls for ${counted(notLocal, 'rule')} fail`;
    const text = `${what}: ${CONSEQUENCES[policy ?? 'none']}${rest}`;
    const isAnswered = policy !== null && policy !== 'error' && notLocal === 0;
    return { state: isAnswered ? 'amber' : 'red', text, todo: RESTORE };
  }
}

/** What a server is in the conditions of a fault. */
export const TROUBLES: Readonly<Record<Trouble, string>> = {
  silent: 'silent',
  failing: 'failing',
  away: 'not connected',
};

/** What a server in trouble means, by the policy in force. */
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

function secondsSince(milliseconds: number): number {
  return Math.max(0, Math.round((Date.now() - milliseconds) / 1000));
}

/** A time in its largest unit: `12 s`, `5 min`, `3 h`, `40 d`. */
export function durationText(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}
