import { type Program, type ProgramFlags, runProgram } from '../../src/cli/program';

/** What a program has written, and its exit code. */
export interface ProgramRun {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program in this process. */
export async function runOf<Spec extends ProgramFlags>(
  program: Program<Spec>,
  argv: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  isTTY = false,
): Promise<ProgramRun> {
  const written = { stdout: '', stderr: '' };
  const exitCode = await runProgram(program, argv, {
    stdout: { isTTY, write: (text) => (written.stdout += text) },
    stderr: { isTTY, write: (text) => (written.stderr += text) },
    environment,
  });
  return { exitCode, ...written };
}
