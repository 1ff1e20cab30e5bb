import {
  type ListedOffender,
  type Offender,
  type OffenderQuery,
  type OffenderSummary,
  mergeOffenders,
  shownOffender,
  topOf,
} from '../limiter/offender';
import type { ListedLoad, ListedSetting } from './answers';
import { excerpt } from '../text/excerpt';
import { boundedText } from '../text/table-key';
import { Changes } from './fleet/changes';
import type { Configurations } from './configurations';
import type { DecisionOperator } from './decisions';
import { isoTime } from '../text/iso-time';
import { type FindPeers, FleetView } from './fleet/fleet';
import { type HealthOptions, HealthView, worstOf } from './health';
import { type HistoryOptions, type HistoryQuery, HistoryRecorder, type RecordedHistory } from './history/history';
import { LiveView } from './history/live';
import type { Change, Fleet, InstanceReport, ListedHealth, LiveEvent } from './live-answers';
import { type Compared, LISTED_OFFENDERS, LISTED_RULES, LONGEST_REPORTED } from './fleet/merge-reports';
import { type RuleListing, type RuleQuery, listRules } from './rules';
import type { FleetWatch, WatchedCaller } from './fleet/watches';

/** How much of a rejection is in an event, in characters, and how many callers. */
const REASON = 1_000;
const OFFENDERS = 10;

export interface OperatorOptions extends HealthOptions, HistoryOptions {
  /** The decisions of this process, or of the workers that decide for it. */
  readonly decisions: DecisionOperator;
  /** Brings statistics that other processes count up to date. */
  readonly collect?: (() => Promise<void>) | undefined;
  readonly settings: readonly ListedSetting[];
  readonly instance: Pick<InstanceReport, 'id' | 'name' | 'version' | 'startedAt' | 'settings'>;
  /** The settings that may differ between instances. */
  readonly expectedDifferences?: ReadonlySet<string>;
  /** The other instances; undefined: they are not known. */
  readonly findPeers?: FindPeers | undefined;
}

/**
 * What operators see and change of a running service, which this process is, or is the primary of. Answers are plain
 * JSON, apart from lists that may be long.
 */
export class Operator {
  readonly decisions: DecisionOperator;
  readonly #changes: Changes;
  readonly #options: OperatorOptions;
  readonly #live: LiveView;
  readonly #health: HealthView;
  readonly #history: HistoryRecorder;
  readonly #fleet: FleetView;

  constructor(options: OperatorOptions) {
    this.decisions = options.decisions;
    this.#changes = new Changes(options.instance);
    this.#options = options;
    this.#live = new LiveView(options.statistics);
    this.#health = new HealthView(options);
    this.#history = new HistoryRecorder(options);
    this.#fleet = new FleetView({
      find: options.findPeers ?? (async () => []),
      id: options.instance.id,
      expected: options.expectedDifferences ?? new Set(),
      kept: { history: this.#history, changes: this.#changes },
    });
  }

  /** The active rules, or the domains of all of them when there is none of that name. */
  async rules(query: RuleQuery): Promise<RuleListing | { readonly knownDomains: readonly string[] }> {
    await this.#options.collect?.();
    const { config$, statistics } = this.#options;
    const { loaded, rejected } = config$.value;
    if (query.domain !== undefined && loaded?.ruleset.domains.get(query.domain) === undefined) {
      return { knownDomains: [...(loaded?.ruleset.domains.keys() ?? [])] };
    }
    return {
      loaded:
        loaded === undefined
          ? null
          : {
              source: loaded.origin.source,
              version: loaded.origin.version,
              at: isoTime(loaded.at / 1000),
              rules: loaded.ruleset.size,
            },
      rejected: rejected === undefined ? null : { reason: rejected.reason, at: isoTime(rejected.at / 1000) },
      items: loaded === undefined ? [] : listRules(loaded.ruleset, query, statistics),
    };
  }

  /** The current values of all statistics. */
  async statistics(): Promise<Iterable<readonly [name: string, value: number]>> {
    await this.#options.collect?.();
    return this.#options.statistics.entries();
  }

  /** What happens at present. It is measured from one call to the next, so that it has one caller. */
  async live(): Promise<LiveEvent> {
    const { collect, readiness, workers } = this.#options;
    await collect?.();
    const offenders = await this.offenders({ limit: OFFENDERS });
    const { rejected } = this.configurations;
    return {
      at: new Date().toISOString(),
      health: this.health,
      checks: readiness.checks.map(({ name, failure = null, note = null }) => ({ name, failure, note })),
      ...this.#live.measure(),
      workers: workers?.() ?? [],
      loaded: this.#loaded,
      rejected: rejected && { ...withoutFiles(rejected), reason: excerpt(rejected.reason, REASON) },
      offenders,
    };
  }

  get health(): ListedHealth {
    const { findPeers } = this.#options;
    const health = this.#ownHealth;
    const part = findPeers === undefined ? ONLY_THIS : this.#fleet.part(this.#compared);
    const instances = this.#health.timed('instances', part);
    return { ...health, instances, state: worstOf([health.state, instances.state]) };
  }

  get #compared(): Compared {
    return { ...this.#options.instance, loaded: this.#loaded };
  }

  get #ownHealth(): InstanceReport['health'] {
    const { health } = this.#health;
    return { ...health, state: worstOf([health.store, health.rules, health.process].map(({ state }) => state)) };
  }

  get #loaded(): LiveEvent['loaded'] {
    const { active } = this.configurations;
    return active && withoutFiles(active);
  }

  /** What other instances see of this one. */
  async report(): Promise<InstanceReport> {
    const { instance } = this.#options;
    const summary = mergeOffenders([await this.#offenders()], LISTED_OFFENDERS);
    return {
      ...instance,
      health: this.#ownHealth,
      loaded: this.#loaded,
      ...this.#history.latest(LISTED_RULES),
      offenders: { ...summary, offenders: summary.offenders.map(reported) },
      changes: this.#changes.version,
    };
  }

  /** The callers that are limited most. */
  async offenders(query: OffenderQuery): Promise<readonly Offender[]> {
    const now = Date.now() / 1000;
    return topOf(await this.#offenders(), query).map((each) => shownOffender(each, now));
  }

  /** With the calls of their rules. */
  async #offenders(): Promise<OffenderSummary> {
    const summary = await this.decisions.offenders();
    const calls = this.#history.recentCalls;
    const offenders = summary.offenders.map((each) => ({ ...each, calls: calls.get(each.statisticsKey) ?? null }));
    return { ...summary, offenders };
  }

  /** All instances as one. */
  async fleet(): Promise<Fleet> {
    return this.#fleet.read(await this.report());
  }

  /** What has happened in the last hour; undefined when there is no such instance. */
  async history(query: HistoryQuery): Promise<RecordedHistory | undefined> {
    // What another instance asks for is what this one has.
    if (query.most === undefined) await this.look();
    return this.#history.read(query);
  }

  /**
   * Calls of the last seconds of a caller, which all instances watch from now on; null when too many others are.
   *
   * @param isOwn whether only those of this instance are asked for
   */
  async watch(caller: WatchedCaller, isOwn: boolean): Promise<FleetWatch | null> {
    const own = await this.decisions.watch(caller);
    if (own === null || isOwn || this.#options.findPeers === undefined) return own && { ...own, missing: [] };
    return this.#fleet.watch(caller, own, this.#compared);
  }

  /** What operators have changed, in all instances that are known: the newest last. */
  async changes(most?: number): Promise<readonly Change[]> {
    if (most === undefined) await this.look();
    return this.#changes.list.slice(most === undefined ? 0 : -most);
  }

  /** Keeps a change that was made here. */
  addChange(change: Parameters<Changes['add']>[0]): void {
    this.#changes.add(change);
  }

  /** Asks the other instances, and waits for them a little. */
  async look(): Promise<void> {
    if (this.#options.findPeers !== undefined) await this.#fleet.look(this.#compared);
  }

  /** Takes what another instance knows, which ends. */
  async taking(id: string): Promise<void> {
    await this.#fleet.taking(id, this.#compared);
  }

  /** Gives to the others what this instance knows, which ends. */
  async leave(): Promise<void> {
    this.#history.leave();
    await this.#fleet.leave();
  }

  /** To be called every ten seconds. */
  sample(): void {
    this.#history.sample();
    // Parts begin to be in a state when that is seen.
    void this.#ownHealth;
  }

  /** To be called when the servers of the stores have changed. */
  seeServers(): void {
    this.#history.seeServers();
  }

  get loads(): readonly ListedLoad[] {
    return this.#options.configurations.loads;
  }

  get configurations(): Configurations {
    return this.#options.configurations.list;
  }

  /** The settings with their values, without secrets. */
  get settings(): readonly ListedSetting[] {
    return this.#options.settings;
  }
}

/** With texts as other instances keep them, so that the callers of all can be merged. */
function reported({ key, rule, ...offender }: ListedOffender): ListedOffender {
  return { ...offender, key: boundedText(key, LONGEST_REPORTED), rule: boundedText(rule, LONGEST_REPORTED) };
}

const ONLY_THIS: ReturnType<FleetView['part']> = {
  ...{ state: 'unknown', text: 'only this one is known', known: 1, seen: 1 },
  todo: { text: 'OPERATOR_PEERS names the others', link: 'docs/operators-api.md#the-fleet' },
};

/** An event has neither the files nor the errors of a configuration. */
function withoutFiles<T extends { readonly files: unknown; readonly errors?: unknown }>(
  configuration: T,
): Omit<T, 'files' | 'errors'> {
  const { files: _files, errors: _errors, ...rest } = configuration;
  return rest;
}
