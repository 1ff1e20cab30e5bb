// Imports nothing, so that it can be loaded before everything else.

/**
 * The signals that request termination. SIGHUP is treated like SIGTERM: there is no configuration that it could reload. SIGPWR is
 * how LXC stops a container.
 */
export const TERMINATION_SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGPWR'];

/** Those of a program that is being put together; undefined when nothing is recorded. */
let recorded: NodeJS.Signals[] | undefined;

/**
 * Records the signals that request termination until {@link takeRecordedSignals}: they would end a program that still loads, except
 * in a container whose first process it is, where the system drops them. A second one ends the process with 1: it may be waiting for
 * something, and there is no drain yet that the signal could abort.
 *
 * From here on, these signals do not terminate the process by themselves any more, up to its exit.
 */
export function recordTerminationSignals(): void {
  recorded = [];
  for (const signal of TERMINATION_SIGNALS) {
    process.on(signal, () => {
      recorded?.push(signal);
      if (recorded !== undefined && recorded.length > 1) process.exit(1);
    });
  }
}

/** @returns the recorded signals, to the one that takes care of the further ones */
export function takeRecordedSignals(): readonly NodeJS.Signals[] {
  const taken = recorded ?? [];
  recorded = undefined;
  return taken;
}
