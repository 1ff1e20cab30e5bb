import { TestScheduler, type RunHelpers } from 'rxjs/testing';

/**
 * Runs a scenario in virtual time, one millisecond per character; `scheduler` is for code that takes one. Comparison is
 * strict: classes and undefined members count, and errors differ when their class, code or message does.
 */
export function marbles<T>(scenario: (helpers: RunHelpers, scheduler: TestScheduler) => T): T {
  const scheduler = new TestScheduler((actual, expected) => expect(distinct(actual)).toStrictEqual(distinct(expected)));
  return scheduler.run((helpers) => scenario(helpers, scheduler));
}

/** Jest considers errors with the same message equal; this exposes their class and other members to the comparison. */
function distinct(value: unknown): unknown {
  if (value instanceof Error)
    return { class: value.constructor.name, message: value.message, ...Object.fromEntries(Object.entries(value)) };
  if (Array.isArray(value)) return value.map(distinct);
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, distinct(member)]));
}
