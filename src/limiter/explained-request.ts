import type { Rule } from '../rules/rule-tree';
import { DecisionError } from '../counting/decision-error';
import type { Result } from '../counting/operation';
import { ReadTable } from '../counting/read-then-decide';
import { simulate } from '../counting/simulate';
import type { LocalCounts } from './local-counts';
import type { Decision, LimiterOptions } from './decision';
import type { RateLimitRequest } from './request';
import type { LimitedDescriptor, Resolution } from './resolution';
import type { Verdict } from './verdict';

/** What a decision would do with a descriptor. */
export interface ExplainedDescriptor {
  readonly resolution: Resolution;
  /** The rule because of which that one is not applied; of several, the first. */
  readonly replacedBy: Rule | undefined;
}

/**
 * A request up to the store, with nothing counted: the counts that a decision needs, and what it would answer with
 * them.
 */
export class ExplainedRequest {
  /** In the order of the request. */
  readonly descriptors: readonly ExplainedDescriptor[];
  readonly #trial: Decision;
  readonly #local: LocalCounts | undefined;

  /**
   * @param trial a decision whose statistics and local cache are not those of the service
   * @param local what counts for the policy `local`; it is only read
   */
  constructor(
    trial: Decision,
    readonly options: LimiterOptions,
    /** The time of the explanation, in Unix seconds. */
    readonly nowSeconds: number,
    local: LocalCounts | undefined,
  ) {
    this.#trial = trial;
    this.#local = local;
    const replacers = replacersIn(trial.resolutions);
    this.descriptors = trial.resolutions.map((resolution) => ({
      resolution,
      replacedBy: resolution.kind === 'replaced' ? replacers.get(resolution.rule?.limit?.name ?? '') : undefined,
    }));
  }

  get request(): RateLimitRequest {
    return this.#trial.request;
  }

  /** What a decision would send to the store. */
  get operations(): readonly LimitedDescriptor[] {
    return this.#trial.operations;
  }

  /**
   * The verdict of a decision that finds these counts and states. What the store has not read is decided by its policy.
   *
   * @param stored by key; to be called once
   */
  verdict(stored: ReadonlyMap<string, Result>): Verdict {
    const counted: LimitedDescriptor[] = [];
    const countedLocally: LimitedDescriptor[] = [];
    for (const operation of this.operations) {
      const result = stored.get(operation.key);
      if (!(result instanceof DecisionError)) counted.push(operation);
      else {
        operation.failure = result;
        if (operation.limit.onStoreFailure === 'local') countedLocally.push(operation);
      }
    }
    simulate(counted, new ReadTable(stored));
    this.#local?.copyOf(countedLocally, this.nowSeconds).count(countedLocally, this.nowSeconds);
    return this.#trial.verdict();
  }

  /** What a key has for the policy `local`. */
  localCountOf(key: string): number | undefined {
    return this.#local?.countOf(key);
  }
}

/** By the names that they replace: the first of the matched rules. The number of names is limited as in a decision. */
function replacersIn(resolutions: readonly Resolution[]): ReadonlyMap<string, Rule> {
  const replacers = new Map<string, Rule>();
  if (!resolutions.some(({ kind }) => kind === 'replaced')) return replacers;
  for (const rule of new Set(resolutions.map(({ rule: matched }) => matched))) {
    if (rule === undefined) continue;
    for (const name of rule.replaces) if (!replacers.has(name)) replacers.set(name, rule);
  }
  return replacers;
}
