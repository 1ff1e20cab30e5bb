import { FlagError, type FlagSpec } from './flags';

/** The shells whose command lines can be completed. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** What is completed: the flags of a program, and its commands. */
export interface Completed {
  readonly name: string;
  readonly flags: FlagSpec;
  readonly commands: readonly string[];
}

/**
 * The script with which a shell completes the command line of a program. Where neither a flag nor a command fits, files
 * are proposed.
 *
 * @throws {FlagError} for another shell
 */
export function completion(shell: string, completed: Completed): string {
  if (shell === 'bash') return inBash(completed);
  if (shell === 'zsh') return inZsh(completed);
  if (shell === 'fish') return inFish(completed);
  throw new FlagError(`invalid value "${shell}" for flag -completion: expected ${SHELLS.join(', ')}`);
}

function inBash({ name, flags, commands }: Completed): string {
  const words = [...commandWords(commands), ...Object.keys(flags).map((flag) => `-${flag}`)];
  return `complete -o default -W ${quoted(words.join(' '))} ${name}\n`;
}

function inZsh({ name, flags, commands }: Completed): string {
  const specs = Object.entries(flags).map(([flag, { isList, help, placeholder }]) => {
    const value = placeholder === undefined ? '' : `:${inSpec(placeholder)}:${takesFile(placeholder) ? '_files' : ''}`;
    return quoted(`${isList === true ? '*' : ''}-${flag}[${inSpec(help)}]${value}`);
  });
  const others = commands.length === 0 ? '*:file:_files' : `*:command:(${commandWords(commands).join(' ')})`;
  return `#compdef ${name}
_${name}() {
  _arguments ${[...specs, quoted(others)].join(' \\\n    ')}
}
compdef _${name} ${name}
`;
}

function inFish({ name, flags, commands }: Completed): string {
  const lines = Object.entries(flags).map(([flag, { help, placeholder }]) => {
    const value = placeholder === undefined ? '' : takesFile(placeholder) ? ' -r -F' : ' -x';
    return `complete -c ${name} -o ${flag}${value} -d ${quoted(help)}`;
  });
  if (commands.length > 0) lines.unshift(`complete -c ${name} -f -a ${quoted(commandWords(commands).join(' '))}`);
  return `${lines.join('\n')}\n`;
}

/** The words of commands such as `counter get`, each once. */
function commandWords(commands: readonly string[]): readonly string[] {
  return [...new Set(commands.flatMap((command) => command.split(' ')))];
}

function takesFile(placeholder: string): boolean {
  return placeholder === 'file' || placeholder === 'PATH';
}

/** A text within a specification of `_arguments`. */
function inSpec(text: string): string {
  return text.replaceAll(/[[\]:\\]/g, String.raw`\$&`);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
