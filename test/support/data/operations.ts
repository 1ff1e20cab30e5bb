import type { LimitWindow } from '../../../src/counting/windows';
import { MAX_WINDOW_SECONDS } from '../../../src/rules/unit';
import { type Counted, type CountedLimit, type Group, Operation } from '../../../src/counting/operation';

/** What a test says of an operation: of its limit, the hits alone are a number, 0 if it does not matter. */
export interface OperationParts extends Partial<Omit<CountedLimit, 'requestsPerUnit'>> {
  readonly limit?: number;
  readonly group?: Group | undefined;
  readonly calls?: number[] | undefined;
}

/** An operation on a counter of a minute, if not told otherwise. */
export function operation(key: string, hits: number, parts: OperationParts = {}): Operation {
  const { limit = 0, group, calls, lengthSeconds = 60, ...more } = parts;
  const made = new Operation({ requestsPerUnit: limit, lengthSeconds, ...more }, key, hits, group);
  made.calls = calls;
  return made;
}

/** Operations that are applied as one step, which were made one by one. */
export function grouped(group: Group, ...operations: readonly Operation[]): readonly Operation[] {
  return operations.map((each) => Object.assign(each, { group }));
}

/** A window of so many seconds; numbers that are no length are the Unix time at which one of the calendar ends. */
export function windowOf(seconds: number): LimitWindow {
  return seconds > MAX_WINDOW_SECONDS ? { lengthSeconds: 86_400, endsAt: seconds } : { lengthSeconds: seconds };
}

/** The counter of such an operation. @param seconds as of {@link windowOf} */
export function counterOf(key: string, seconds = 60): Counted {
  return { key, limit: { requestsPerUnit: 0, ...windowOf(seconds) } };
}

/** A group that is counted as STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT says. */
export function stopWhenOver(isOver = false): Group {
  return { mode: 'stop_when_over', isOver };
}

/** A group of limits with algorithms. */
export function allOrNothingGroup(): Group {
  return { mode: 'all_or_nothing' };
}
