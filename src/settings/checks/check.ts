import type { Field, SettingsView } from '../settings';

/** A check of settings against each other. It is skipped when one of the settings that it concerns is invalid by itself. */
export interface Check {
  readonly concerns: readonly Field[];
  /** What is wrong and how to correct it, in one sentence; undefined when nothing is wrong. */
  readonly find: (view: SettingsView) => string | undefined;
}

/** Declares a check; the compiler restricts it to the settings that it concerns. */
export function check<const Fields extends Field>(
  concerns: readonly Fields[],
  find: (view: SettingsView<Fields>) => string | undefined,
): Check {
  return { concerns, find };
}
