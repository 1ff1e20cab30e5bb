import { messageOf } from '../text/thrown';
import { visible, visibleLine } from '../text/visible';
import { tolerateClosedPipes } from './closed-pipes';
import { SHELLS, completion } from './completion';
import { FlagError, type FlagSpec, type FlagValues, booleanFlag, flagHelp, parseFlags, textFlag } from './flags';
import { VERSION } from '../version';

/** The exit codes of all programs. Only weir-client with `-exit_code` has the last one. */
export const Exit = { DONE: 0, FAILED: 1, WRONG_USE: 2, OVER_LIMIT: 3 } as const;
export type ExitCode = (typeof Exit)[keyof typeof Exit];

/** A stream that a program writes text to. */
export interface Output {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** The streams and the environment of a program: those of its process, or of a test. */
export interface CliIo {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly environment: NodeJS.ProcessEnv;
}

export interface CommandLine<Spec extends FlagSpec> extends CliIo {
  readonly values: FlagValues<Spec>;
  /** The arguments that are not flags. */
  readonly rest: readonly string[];
}

export interface ProgramResult {
  readonly exitCode: ExitCode;
  /** What the program prints with `-json`. */
  readonly answer: unknown;
  /** What the program prints otherwise, without the end of the last line. */
  readonly text: () => string | Promise<string>;
  /** The text is for another program: it has no colours. */
  readonly isPlain?: boolean;
}

/** The flag of JSON that all programs have. */
export const JSON_FLAG = booleanFlag('print JSON');

export interface Program<Spec extends ProgramFlags> {
  readonly name: string;
  readonly flags: Spec;
  /** The commands of the program, if the first arguments are one. */
  readonly commands?: readonly string[];
  /** The help before and after the flags. */
  readonly help: readonly [before: string, after: string];
  /**
   * @throws {FlagError} when the command line or the environment is wrong
   * @throws Error with one sentence for the user when the work cannot be done
   */
  readonly run: (line: CommandLine<Spec>) => Promise<ProgramResult>;
}

export type ProgramFlags = FlagSpec & { readonly json: typeof JSON_FLAG };

const COMMON = { completion: textFlag(SHELLS.join('|'), 'print what completes the command line in a shell') };

/**
 * Runs a program.
 *
 * @param argv the command line without interpreter and program
 * @returns the exit code
 */
export async function runProgram<Spec extends ProgramFlags>(
  { name, flags, commands = [], help, run }: Program<Spec>,
  argv: readonly string[],
  io: CliIo,
): Promise<ExitCode> {
  const { stdout, stderr, environment } = io;
  try {
    const spec = { ...flags, ...COMMON };
    const { information, values: parsed, rest } = parseFlags(argv, spec);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- all flags are those of both
    const values = parsed as unknown as FlagValues<Spec> & FlagValues<typeof COMMON & { json: typeof JSON_FLAG }>;
    if (information === 'help') stdout.write(`${help[0]}\n${flagHelp(spec)}\n${help[1]}`);
    else if (information === 'version') stdout.write(`${name} ${VERSION}\n`);
    else if (values.completion !== '') stdout.write(completion(values.completion, { name, flags: spec, commands }));
    else {
      const { exitCode, answer, text, isPlain: isForProgram = false } = await run({ ...io, values, rest });
      const isPlain = values.json || isForProgram || !hasColours(stdout, environment);
      const shown = visible(values.json ? JSON.stringify(answer, null, 2) : await text());
      stdout.write(`${isPlain ? shown : coloured(shown)}\n`);
      return exitCode;
    }
    return Exit.DONE;
  } catch (error) {
    const isWrongUse = error instanceof FlagError;
    stderr.write(`${name}: ${visibleLine(messageOf(error))}\n${isWrongUse ? `Run ${name} -h for its flags.\n` : ''}`);
    return isWrongUse ? Exit.WRONG_USE : Exit.FAILED;
  }
}

/** Runs a program as this process. */
export function start<Spec extends ProgramFlags>(program: Program<Spec>): void {
  // Deprecation warnings of Node about a library do not help the user of the program.
  process.noDeprecation = true;
  tolerateClosedPipes(process.stdout, process.stderr);
  const { stdout, stderr, env: environment } = process;
  void runProgram(program, process.argv.slice(2), { stdout, stderr, environment }).then((code) => {
    process.exitCode = code;
  });
}

/** On a terminal, unless it has none or the user wants none: no-color.org. */
function hasColours({ isTTY }: Output, { NO_COLOR = '', TERM }: NodeJS.ProcessEnv): boolean {
  return isTTY === true && NO_COLOR === '' && TERM !== 'dumb';
}

const [RED, GREEN, YELLOW] = [31, 32, 33] as const;
const COLOURS: Readonly<Record<string, number>> = {
  OVER_LIMIT: RED,
  unhealthy: RED,
  failed: RED,
  error: RED,
  OK: GREEN,
  healthy: GREEN,
  passed: GREEN,
  warning: YELLOW,
};
const COLOURED_WORD = new RegExp(`(?<![\\w=-])(?:${Object.keys(COLOURS).join('|')})(?![\\w=-])`, 'g');

/** A text with the words in colour that say how something went. */
function coloured(text: string): string {
  return text.replaceAll(COLOURED_WORD, (word) => `\u001b[${COLOURS[word]}m${word}\u001b[0m`);
}
