import { FlagError, parseFlags } from '../cli/flags';
import type { CliIo } from '../cli/program';
import { helpText } from '../settings/docs';
import { hideAddressCredentials } from '../text/hide-credentials';
import { visible } from '../text/visible';
import { VERSION } from '../version';

/**
 * Does what the command line of weir requests. All settings are environment variables, so that an argument is a
 * mistake.
 *
 * @param argv the command line without interpreter and program
 * @param outputs read only to be written to: the mere access to `process.stdout` makes a pipe non-blocking for all of
 *   its processes
 * @returns the exit code; undefined when there are no arguments and the service is to be run
 */
export function answerCommandLine(
  argv: readonly string[],
  outputs: Pick<CliIo, 'stdout' | 'stderr'>,
): 0 | 2 | undefined {
  try {
    const { information, rest } = parseFlags(argv, {});
    if (information === 'help') outputs.stdout.write(helpText());
    else if (information === 'version') outputs.stdout.write(`weir ${VERSION}\n`);
    else if (rest[0] === undefined) return undefined;
    else throw new FlagError(`unexpected argument "${withoutValue(rest[0])}"`);
    return 0;
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    outputs.stderr.write(
      `weir: ${visible(error.message)}\nweir is configured by environment variables; weir --help lists them.\n`,
    );
    return 2;
  }
}

/** An argument for a message: it may be a setting with a secret. */
function withoutValue(argument: string): string {
  return hideAddressCredentials(argument.replace(/=[^]*$/, '=…'));
}
