import type { LimitState } from './algorithms/algorithm';
import { NO_BLOCK } from './algorithms/blocking';
import { decideAllOrNothing, decideAlone, decideTogether, hitsOfGroup } from './group';
import { type Counted, type Operation, type Stored, groupLength } from './operation';
import { grantOf } from './grant';

/** Counters that are at hand: those of the memory store, of the policy `local`, or what an explanation has read. */
export interface CounterTable {
  /** The count of a key; 0 for an absent one. */
  countOf(counter: Counted): number;
  /**
   * Adds hits, subtracts negative ones down to 0, and reads with 0; returns the count after it. An absent key is only
   * created by hits.
   */
  add(counter: Counted, hits: number): number;
  /**
   * What the algorithm of a limit has in a key, at the present time; the state in which nothing counts for an absent
   * one.
   */
  stateOf(counter: Counted): LimitState;
  /** Sets it, if it is not what {@link stateOf} returned. */
  keep(counter: Counted, state: LimitState, before: LimitState): void;
}

/**
 * Applies the operations of one call, in order: each gets its count after it, its outcome, and whether it is left out.
 */
export function simulate(operations: readonly Operation[], table: CounterTable): void {
  for (let index = 0; index < operations.length; index += 1) {
    const operation = operations[index] as Operation;
    const { group, limit } = operation;
    if (group !== undefined) {
      const members = operations.slice(index, index + groupLength(operations, index));
      if (group.mode === 'stop_when_over') addGroup(members, table);
      else decideGroup(members, table);
      index += members.length - 1;
    } else if (limit.algorithm === undefined) operation.countAfter = table.add(operation, operation.hits);
    else {
      const before = table.stateOf(operation);
      table.keep(operation, decideAlone(operation, before), before);
    }
  }
}

/**
 * Applies a batch of operations, each of which may be several calls, as a store does: in order, and without a decision.
 * Returns for each the count after it; with an algorithm, the state before it.
 */
export function run(batch: readonly Operation[], table: CounterTable): readonly Stored[] {
  // Of its final length, so that it does not have to grow.
  const results = new Array<Stored>(batch.length);
  for (let index = 0; index < batch.length; index += 1) {
    const operation = batch[index] as Operation;
    const { group, limit } = operation;
    if (group === undefined && limit.algorithm === undefined) {
      const after = table.add(operation, operation.hits);
      results[index] = after;
      if (operation.lease !== undefined) grant(operation, limit.requestsPerUnit - after, table);
      continue;
    }
    const members = batch.slice(index, index + groupLength(batch, index));
    const stored = limit.algorithm === undefined ? countsAfter(members, table) : statesBefore(members, table);
    for (let at = 0; at < stored.length; at += 1) results[index + at] = stored[at] as Stored;
    index += members.length - 1;
  }
  return results;
}

function addGroup(members: readonly Operation[], table: CounterTable): void {
  const hits = hitsOfGroup(members, (operation) => table.countOf(operation));
  members.forEach((operation, at) => {
    operation.isLeftOut = hits[at] !== operation.hits;
    operation.countAfter = table.add(operation, hits[at]!);
  });
}

function decideGroup(members: readonly Operation[], table: CounterTable): void {
  const before = members.map((operation) => table.stateOf(operation));
  const states = [...before];
  decideAllOrNothing(members, states);
  members.forEach((operation, at) => table.keep(operation, states[at]!, before[at]!));
}

/** The counts after the operations of a group with `stop_when_over`. */
function countsAfter(members: readonly Operation[], table: CounterTable): readonly number[] {
  const hits = hitsOfGroup(members, (operation) => table.countOf(operation));
  return members.map((operation, at) => table.add(operation, hits[at]!));
}

/** Takes what a lease may have of a counter. */
function grant(operation: Operation, left: number, table: CounterTable): void {
  const request = operation.lease!;
  request.granted = grantOf(request.wants, left);
  if (request.granted > 0) table.add(operation, request.granted);
}

/** Grants a lease of a counter with an algorithm. Returns the state after it. */
function reserve({ lease, limit }: Operation, state: LimitState): LimitState {
  const algorithm = limit.algorithm!;
  const { wants, milliseconds } = lease!;
  lease!.granted = grantOf(Math.min(wants, algorithm.reservable(state, milliseconds)), algorithm.reservable(state, 0));
  return algorithm.reserve(state, lease!.granted, milliseconds);
}

/** Whether hits that are given back, if they are, still count where they were taken. */
function isApplied({ hits, limit, onlyInWindow }: Operation, state: LimitState): boolean {
  return onlyInWindow === undefined || limit.algorithm!.takesBack(-hits, onlyInWindow, state);
}

/** Applies a call to operations that are decided together, or to one. */
function statesAfter(
  members: readonly Operation[],
  states: readonly LimitState[],
  hits: number,
): readonly LimitState[] {
  const [{ limit, purpose }] = members as [Operation];
  // A call with a purpose is decided by each limit alone.
  if (purpose !== undefined) return [limit.algorithm!.decide(states[0]!, hits, purpose).state];
  return decideTogether(members, states, hits).map(({ state }) => state);
}

function withoutBlock(state: LimitState): LimitState {
  return 'block' in state ? { ...state, block: NO_BLOCK } : state;
}

/** Applies the calls of operations that are decided together, or of one. Returns the states before them. */
function statesBefore(members: readonly Operation[], table: CounterTable): readonly LimitState[] {
  const before = members.map((operation) => table.stateOf(operation));
  const [first] = members as [Operation];
  let states: readonly LimitState[] = first.endsBlock ? before.map(withoutBlock) : before;
  const { hits, calls = [hits] } = first;
  if (isApplied(first, before[0]!)) {
    for (const each of calls) states = statesAfter(members, states, each);
  }
  if (first.lease !== undefined) states = [reserve(first, states[0]!)];
  members.forEach((operation, at) => table.keep(operation, states[at]!, before[at]!));
  return before;
}
