import type { CounterChange, CounterState } from '../src/operators/answers';
import { type Answer, call, useReading } from './api';
import { count, counted, limitText } from './text';

/** Whose counters are meant. */
export interface Caller {
  readonly domain: string;
  readonly descriptor: string;
}

function pathOf(parameters: Caller & { readonly window?: string; readonly reason?: string }): string {
  return `counters?${String(new URLSearchParams({ ...parameters }))}`;
}

/** Milliseconds between two looks at counters. */
const LOOK_INTERVAL = 3_000;

/** The counters of a caller: of a rule with several limits, one for each. */
export function useCounters(caller: Caller, changes: number): Answer<readonly CounterState[]> {
  async function read(): Promise<readonly CounterState[]> {
    const first = await call<CounterState>(pathOf(caller));
    const others = first.windows.filter((window) => window !== first.window);
    return [first, ...(await Promise.all(others.map((window) => call<CounterState>(pathOf({ ...caller, window })))))];
  }
  return useReading(pathOf(caller), read, { every: LOOK_INTERVAL, version: changes });
}

/** What is to be changed. */
export interface Change {
  readonly states: readonly CounterState[];
  /** Null: they are cleared. */
  readonly value: number | null;
  /** Why, for the log; empty: not said. */
  readonly reason?: string;
}

/** @throws ApiError at the first counter that was not changed */
export async function carryOut(
  caller: Caller,
  { states, value, reason = '' }: Change,
  onDone: (change: CounterChange) => void,
): Promise<void> {
  // The API has an object where it is JSON.
  const descriptor = caller.descriptor.startsWith('{') ? (JSON.parse(caller.descriptor) as unknown) : caller.descriptor;
  for (const { window, windows } of states) {
    const chosen = { ...(windows.length > 1 && { window }), ...(reason !== '' && { reason }) };
    const body = JSON.stringify({ ...caller, descriptor, ...chosen, count: value });
    const change =
      value === null
        ? call<CounterChange>(pathOf({ ...caller, ...chosen }), { method: 'DELETE' })
        : call<CounterChange>('counters', { method: 'PUT', body });
    onDone(await change);
  }
}

export function isBucket({ algorithm }: Pick<CounterState, 'algorithm'>): boolean {
  return algorithm === 'token_bucket';
}

/** Counts open reservations: it can be neither cleared nor set. */
export function isConcurrent({ algorithm }: Pick<CounterState, 'algorithm'>): boolean {
  return algorithm === 'max_concurrent';
}

/** Whether the counter begins anew with each second, so that clearing it changes nothing. */
export function isMomentary({ unit, unitMultiplier, algorithm, block }: CounterState): boolean {
  return unit === 'SECOND' && unitMultiplier === 1 && algorithm === null && block === null;
}

/** Whether it makes sense to clear it. */
export function canChange(state: CounterState): boolean {
  return mostOf(state) > 0 && !isConcurrent(state) && !isMomentary(state);
}

/** What a counter has when it is cleared: a bucket is full then. */
export function cleared(state: CounterState): number {
  return isBucket(state) ? (state.burst ?? 0) : 0;
}

/** How many more hits pass. */
export function leftOf(state: CounterState): number {
  if (state.block !== null) return 0;
  return isBucket(state) ? state.count : Math.max(0, state.requestsPerUnit - state.count);
}

/** How many pass when the counter is as new. */
export function mostOf(state: CounterState): number {
  return isBucket(state) ? cleared(state) : state.requestsPerUnit;
}

/** `3 of 5 a minute`, of a bucket its tokens left. */
export function countText(state: CounterState, value: number): string {
  return isBucket(state) ? `${counted(value, 'token')} left` : count(value);
}

/** `the minute counter`, or which limit it is of. */
export function counterName(state: CounterState): string {
  return state.windows.length > 1 || !isBucket(state)
    ? `the ${state.window} counter`
    : `the counter of ${limitText(state)}`;
}
