const FLAG = '--worker';
const INSPECT = /^--inspect(?:-brk|-port|-wait)?(?:=|$)/;

/** The arguments with which a process becomes worker number `number`, counted from 1. */
export function workerArguments(number: number): readonly string[] {
  return [FLAG, String(number)];
}

/**
 * The number of this worker; undefined in every other process. Only a primary starts processes with both these
 * arguments and an IPC channel, so that no environment variable and no command line makes a worker.
 */
export function workerNumber({ argv, connected }: Pick<NodeJS.Process, 'argv' | 'connected'> = process):
  number | undefined {
  const [flag, number, ...rest] = argv.slice(2);
  if (!connected || flag !== FLAG || rest.length > 0) return undefined;
  return /^[1-9]\d*$/.test(number ?? '') ? Number(number) : undefined;
}

export interface ExecArgumentsOptions {
  /** The arguments of Node itself in the primary. */
  readonly execArgv: readonly string[];
  /** NODE_OPTIONS, which workers inherit. */
  readonly nodeOptions: string | undefined;
  /** The port of the primary's inspector. */
  readonly debugPort: number;
}

/**
 * The arguments of Node for a worker: those of the primary, and for the inspector, which only one process can have on a
 * port, the primary's port + the number of the worker.
 */
export function workerExecArguments(
  number: number,
  { execArgv, nodeOptions = '', debugPort }: ExecArgumentsOptions,
): readonly string[] {
  const isInspected = [...nodeOptions.split(/\s+/), ...execArgv].some((argument) => INSPECT.test(argument));
  // Of an option that is given twice, the last one counts, and the command line after NODE_OPTIONS.
  return isInspected ? [...execArgv, `--inspect-port=${debugPort + number}`] : execArgv;
}
