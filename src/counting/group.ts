import type { LimitState, Outcome } from './algorithms/algorithm';
import { LARGEST_COUNT, type Operation } from './operation';
import { deciderOf } from './reserved';

/**
 * The count that an addition of a group with `stop_when_over` must not exceed. The hits −0 are negative ones: a read in
 * the order of the call, which no count exceeds. An ask is over when nothing is left.
 */
export function mostOf({ hits, limit, purpose }: Operation): number {
  if (Object.is(hits, -0)) return LARGEST_COUNT;
  return purpose === 'ask' ? limit.requestsPerUnit - 1 : limit.requestsPerUnit;
}

/**
 * The hits that each operation of a group with `stop_when_over` adds: all of them when nothing goes over its limit;
 * otherwise only those of the operations that are over or would go over. Each addition is judged alone, on the stored
 * count; negative hits always count, and lower the count on which later operations of the same key are judged.
 *
 * @param stored the count of each key before the step
 */
export function hitsOfGroup(group: readonly Operation[], stored: (operation: Operation) => number): readonly number[] {
  const lowered = new Map<string, number>();
  const goesOver = group.map((operation) => {
    const { key, hits } = operation;
    const count = lowered.get(key) ?? stored(operation);
    if (hits >= 0) return count + hits > mostOf(operation);
    lowered.set(key, Math.max(0, count + hits));
    return true;
  });
  const isAnyOver = group[0]?.group?.isOver === true || group.some(({ hits }, index) => hits >= 0 && goesOver[index]);
  return group.map(({ hits }, index) => (isAnyOver && !goesOver[index] ? 0 : hits));
}

/**
 * Decides a call by limits with algorithms, of which one that denies it keeps it from counting on all of them.
 *
 * @param states of each limit, before the call
 */
export function decideTogether(
  limits: readonly Pick<Operation, 'limit'>[],
  states: readonly LimitState[],
  hits: number,
): readonly Outcome[] {
  const outcomes = new Array<Outcome>(limits.length);
  let isCounted = true;
  for (let index = 0; index < limits.length; index += 1) {
    const outcome = limits[index]!.limit.algorithm!.decide(states[index]!, hits);
    outcomes[index] = outcome;
    isCounted &&= outcome.isAllowed;
  }
  if (isCounted) return outcomes;
  return outcomes.map((outcome, index) => {
    return outcome.isAllowed ? limits[index]!.limit.algorithm!.decide(states[index]!, 0) : outcome;
  });
}

/** Decides an operation with an algorithm by the state before it. Returns the state after it. */
export function decideAlone(operation: Operation, state: LimitState): LimitState {
  return decidedAs(operation, operation.limit.algorithm!.decide(state, operation.hits, operation.purpose));
}

/**
 * Decides the operations of a group with `all_or_nothing`, as {@link decideAlone} does one. When they do not count,
 * they are left out.
 *
 * @param states before them; becomes those after them
 */
export function decideAllOrNothing(group: readonly Operation[], states: LimitState[]): void {
  const outcomes = decideTogether(group, states, group[0]!.hits);
  const isCounted = outcomes.every(({ isAllowed }) => isAllowed);
  for (let index = 0; index < group.length; index += 1) {
    const operation = group[index]!;
    operation.isLeftOut = !isCounted;
    states[index] = decidedAs(operation, outcomes[index]!);
  }
}

function decidedAs(operation: Operation, outcome: Outcome): LimitState {
  operation.outcome = outcome;
  operation.countAfter = outcome.used;
  return outcome.state;
}

/**
 * `alone`: one such step over its limit denies the reservation; `together`: all of them do; `never`: it is counted in
 * any case.
 */
export type Denies = 'alone' | 'together' | 'never';

/** A step of a reservation, as far as it can be denied. */
export interface JudgedStep extends Pick<Operation, 'key' | 'hits' | 'limit'> {
  readonly denies: Denies;
}

/** What is in the counters of a reservation. */
export interface JudgedCounters {
  count(key: string): number;
  /** The state of a limit with {@link deciderOf}. */
  state(step: JudgedStep): LimitState;
}

export interface Judgement {
  readonly isDenied: boolean;
  readonly steps: readonly JudgedDone[];
}

/** What a step comes to. */
interface JudgedDone {
  readonly count: number;
  /** By how much the step changes its counter. */
  readonly added: number;
  /** The states before and after the step; undefined without {@link deciderOf}. */
  readonly states: readonly [before: LimitState, after: LimitState] | undefined;
}

/**
 * Whether the steps that open a reservation are denied. If they are: the counts of those over their limit as if they
 * were counted, of the others the present counts. And by how much each step changes its counter, which saturates. Where
 * an algorithm decides, counts are 0.
 */
export function judgeReservation(
  steps: readonly JudgedStep[],
  isDeniedAnyway: boolean,
  counters: JudgedCounters,
): Judgement {
  const sums = new Map<string, number>();
  const present = new Map<string, LimitState>();
  let isDenied = isDeniedAnyway;
  let [together, over] = [0, 0];
  const judged = steps.map((step) => {
    const { key, hits, limit, denies } = step;
    const decider = deciderOf(limit);
    let states: JudgedDone['states'];
    let [before, sum, isOver] = [0, 0, false];
    if (decider === undefined) {
      before = sums.get(key) ?? counters.count(key);
      sum = Math.min(LARGEST_COUNT, before + hits);
      isOver = sum > limit.requestsPerUnit;
      sums.set(key, sum);
    } else {
      const state = present.get(key) ?? counters.state(step);
      const outcome = decider.decide(state, hits);
      isOver = !outcome.isAllowed;
      states = [state, outcome.state];
      present.set(key, outcome.state);
    }
    if (denies === 'together') together += 1;
    if (isOver && denies === 'together') over += 1;
    if (isOver && denies === 'alone') isDenied = true;
    const added = decider === undefined ? sum - before : isOver ? 0 : hits;
    return { before, sum, isOver, added, states };
  });
  isDenied ||= together > 0 && over === together;
  return {
    isDenied,
    steps: judged.map(({ before, sum, isOver, added, states }) => {
      return { count: isDenied && !isOver ? before : sum, added: isDenied ? 0 : added, states };
    }),
  };
}
