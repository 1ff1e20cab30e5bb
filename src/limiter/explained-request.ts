import type { Rule } from '../rules/rule-tree';
import type { LimitState } from './algorithm';
import { LARGEST_COUNT, decideAllOrNothing, decideOn, guardedHits } from './counter-operation';
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

/** A request up to the store, with nothing counted: the counts that a decision needs, and what it would answer with them. */
export class ExplainedRequest {
  /** In the order of the request. */
  readonly descriptors: readonly ExplainedDescriptor[];
  readonly #trial: Decision;

  /** @param trial a decision whose statistics and local cache are not those of the service */
  constructor(
    trial: Decision,
    readonly options: LimiterOptions,
    /** The time of the explanation, in Unix seconds. */
    readonly nowSeconds: number,
  ) {
    this.#trial = trial;
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
   * The verdict of a decision that finds these counts and states.
   *
   * @param stored by key; to be called once
   */
  verdict(stored: ReadonlyMap<string, Stored>): Verdict {
    simulateCounts(this.operations, stored);
    return this.#trial.verdict();
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

/** A count, or what the algorithm of a limit reads. */
export type Stored = number | LimitState;

/**
 * Sets the hits that each operation of a request would add, and the count that it would have after it, as the stores count.
 *
 * @param stored what each key has at present
 */
function simulateCounts(operations: readonly LimitedDescriptor[], stored: ReadonlyMap<string, Stored>): void {
  const counts = new Map(stored);
  const isGuarded = operations[0]?.guard !== undefined && operations[0].algorithm === undefined;
  const hits = isGuarded
    ? guardedHits(operations, (key) => Number(counts.get(key) ?? 0))
    : operations.map((operation) => operation.hits);
  operations.forEach((operation, index) => {
    const { key, guard } = operation;
    const before = counts.get(key) ?? 0;
    if (typeof before === 'object' && guard !== undefined) {
      if (operations[index - 1]?.guard === guard) return;
      const group = operations.slice(index, index + guard.operations);
      const states = group.map((each) => counts.get(each.key) as LimitState);
      decideAllOrNothing(group, states);
      group.forEach((each, at) => counts.set(each.key, states[at]!));
    } else if (typeof before === 'object') counts.set(key, decideOn(operation, before));
    else {
      operation.hits = hits[index] as number;
      operation.after = Math.min(LARGEST_COUNT, Math.max(0, before + operation.hits));
      counts.set(key, operation.after);
    }
  });
}
