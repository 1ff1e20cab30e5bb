const FLAG = '--worker';

/** The arguments with which a process becomes worker number `number`, counted from 1. */
export function workerArguments(number: number): readonly string[] {
  return [FLAG, String(number)];
}

/** The part of `process` that tells its role. */
export interface RoleOfProcess {
  readonly argv: readonly string[];
  /** Whether it was forked with an IPC channel. */
  readonly connected?: boolean | undefined;
}

/**
 * The number of this worker; undefined in every other process. Only a primary starts processes with both these arguments and an IPC
 * channel, so that no environment variable and no command line makes a worker.
 */
export function workerNumber({ argv, connected }: RoleOfProcess = process): number | undefined {
  const [flag, number, ...rest] = argv.slice(2);
  if (connected !== true || flag !== FLAG || rest.length > 0) return undefined;
  return /^[1-9]\d*$/.test(number ?? '') ? Number(number) : undefined;
}
