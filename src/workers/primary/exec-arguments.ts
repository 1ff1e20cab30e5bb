import { parse } from 'node:path';

const INSPECT = /^--inspect(?:-brk|-port|-wait)?(?:=|$)/;
const PROFILE_NAME = /^(--(?:cpu|heap)-prof-name)=(.+)$/;

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
