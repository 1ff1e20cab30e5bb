import { parse } from 'node:path';

const FLAG = '--worker';
const INSPECT = /^--inspect(?:-brk|-port|-wait)?(?:=|$)/;
const PROFILE_NAME = /^(--(?:cpu|heap)-prof-name)=(.+)$/;

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

export interface ExecArgumentsOptions {
  /** The arguments of Node itself in the primary. */
  readonly execArgv: readonly string[];
  /** NODE_OPTIONS, which workers inherit. */
  readonly nodeOptions: string | undefined;
  /** The port of the primary's inspector. */
  readonly debugPort: number;
}

/**
 * The arguments of Node for a worker: those of the primary, but what only one process can have is different in each. The inspector of
 * worker n listens on the primary's port + n, and profiles with a fixed name get the number of the worker in it.
 */
export function workerExecArguments(
  number: number,
  { execArgv, nodeOptions = '', debugPort }: ExecArgumentsOptions,
): readonly string[] {
  const all = [...nodeOptions.split(/\s+/), ...execArgv];
  const own: string[] = [];
  // Of an option that is given twice, the last one counts, and the command line after NODE_OPTIONS.
  if (all.some((argument) => INSPECT.test(argument))) own.push(`--inspect-port=${debugPort + number}`);
  for (const argument of all) {
    const [, option, name] = PROFILE_NAME.exec(argument) ?? [];
    if (option !== undefined && name !== undefined) own.push(`${option}=${numbered(name, number)}`);
  }
  return [...execArgv, ...own];
}

function numbered(file: string, number: number): string {
  const { name, ext } = parse(file);
  return `${name}.worker-${number}${ext}`;
}
