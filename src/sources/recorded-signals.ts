// Imports nothing, so that it can be loaded before everything else.

/**
 * The signals that request termination. SIGHUP is treated like SIGTERM: there is no configuration that it could reload.
 * SIGPWR is how LXC stops a container.
 */
export const TERMINATION_SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGPWR'];

/** A signal, and the time at which it was received, by `performance.now()`. */
export interface ReceivedSignal {
  readonly signal: NodeJS.Signals;
  readonly at: number;
}

/**
 * Milliseconds after the first signal in which another one is the same: a terminal and the program that has started the
 * service both send one at Ctrl+C, and some supervisors send one to the process and one to its group.
 */
const SAME_SIGNAL = 1000;

/** Whether a signal that arrives now is another one than the first. */
export function isAnother(first: ReceivedSignal): boolean {
  return performance.now() - first.at > SAME_SIGNAL;
}

/** The first signal received while the program is put together; undefined when signals are not recorded. */
let recorded: { first: ReceivedSignal | undefined } | undefined;

/**
 * Records the first signal that requests termination until {@link takeRecordedSignal}: they would end a program that
 * still loads, except in a container whose first process it is, where the system drops them. A second one,
 * {@link isAnother}, ends the process with 1: it may be waiting for something, and there is no drain yet that the
 * signal could abort.
 *
 * From here on, these signals do not terminate the process by themselves any more, up to its exit.
 */
export function recordTerminationSignals(): void {
  recorded = { first: undefined };
  for (const signal of TERMINATION_SIGNALS) {
    process.on(signal, () => {
      if (recorded === undefined) return;
      recorded.first ??= { signal, at: performance.now() };
      if (isAnother(recorded.first)) process.exit(1);
    });
  }
}

/** @returns the recorded signal, to the one that takes care of the further ones */
export function takeRecordedSignal(): ReceivedSignal | undefined {
  const taken = recorded?.first;
  recorded = undefined;
  return taken;
}
