import type { Field, SettingsView } from '../settings';

/** A rule that holds between settings. It is left out while one of those it looks at cannot be used by itself. */
export interface Check {
  readonly concerns: readonly Field[];
  /** What is wrong, in one sentence; undefined when nothing is. */
  readonly find: (view: SettingsView) => string | undefined;
}

/** States a check; the compiler lets it look at nothing but what it says it concerns. */
export function check<const Seen extends Field>(
  concerns: readonly Seen[],
  find: (view: SettingsView<Seen>) => string | undefined,
): Check {
  return { concerns, find };
}
