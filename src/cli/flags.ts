/** One flag of a program: its kind, what it stands at when it is not given, and a line of help. */
export type Flag = StringFlag | StringsFlag | NumberFlag | BooleanFlag;

export interface StringFlag {
  readonly kind: 'string';
  readonly default: string;
  /** What the help calls the value, for example `host:port`. */
  readonly placeholder: string;
  readonly help: string;
}

/** May be given any number of times; each value is kept, in order. */
export interface StringsFlag {
  readonly kind: 'strings';
  readonly placeholder: string;
  readonly help: string;
}

/** A whole number, 0 or more. */
export interface NumberFlag {
  readonly kind: 'number';
  readonly default: number;
  /** The largest value allowed. */
  readonly max: number;
  readonly placeholder: string;
  readonly help: string;
}

export interface BooleanFlag {
  readonly kind: 'boolean';
  readonly help: string;
}

/** The flags of a program, by name, without dashes. */
export type FlagSpec = Readonly<Record<string, Flag>>;

type ValueOf<F extends Flag> = F extends StringFlag
  ? string
  : F extends StringsFlag
    ? readonly string[]
    : F extends NumberFlag
      ? number
      : boolean;

export type FlagValues<Spec extends FlagSpec> = { readonly [Name in keyof Spec]: ValueOf<Spec[Name]> };

export interface ParsedFlags<Spec extends FlagSpec> {
  /** `-h`, `-help` was given (and the program has no flag of that name): print the help, look at nothing else. */
  readonly help: boolean;
  readonly values: FlagValues<Spec>;
  /** What follows the flags. */
  readonly rest: readonly string[];
}

/** A command line that the program does not understand; the message is one sentence for the person who typed it. */
export class FlagError extends Error {
  override readonly name = 'FlagError';
}

/**
 * Reads a command line (without program name) as Go's `flag` package does, so that the command lines of the Go programs
 * work unchanged: `-name value`, `-name=value`, both also with two dashes; a boolean flag is given by its name alone or as
 * `-name=false`. Flags end at the first argument that is none, or after `--`. Of a flag given twice the last counts.
 *
 * @throws {FlagError} for a flag that the program does not have, a missing value, or a value of the wrong kind.
 */
export function parseFlags<const Spec extends FlagSpec>(argv: readonly string[], spec: Spec): ParsedFlags<Spec> {
  const values: Record<string, string | string[] | number | boolean> = {};
  for (const [name, flag] of Object.entries(spec)) values[name] = initialValue(flag);
  function parsed(help: boolean, rest: readonly string[]): ParsedFlags<Spec> {
    return {
      help,
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- built above and below by each flag's kind
      values: values as FlagValues<Spec>,
      rest,
    };
  }

  let at = 0;
  while (at < argv.length) {
    const argument = argv[at]!;
    if (argument === '-' || !argument.startsWith('-')) break;
    at += 1;
    if (argument === '--') break;

    const { name, value } = splitArgument(argument);
    const flag = Object.hasOwn(spec, name) ? spec[name] : undefined;
    if (flag === undefined) {
      if (name === 'h' || name === 'help') return parsed(true, argv.slice(at));
      throw new FlagError(`flag provided but not defined: -${name}`);
    }
    if (flag.kind === 'boolean') {
      values[name] = readBoolean(name, value ?? 'true');
      continue;
    }
    const text = value ?? argv[at++];
    if (text === undefined) throw new FlagError(`flag needs an argument: -${name} ${flag.placeholder}`);
    const list = values[name];
    if (Array.isArray(list)) list.push(text);
    else values[name] = flag.kind === 'number' ? readNumber(name, text, flag.max) : text;
  }
  return parsed(false, argv.slice(at));
}

function initialValue(flag: Flag): string | string[] | number | boolean {
  if (flag.kind === 'boolean') return false;
  return flag.kind === 'strings' ? [] : flag.default;
}

function splitArgument(argument: string): { name: string; value: string | undefined } {
  const body = argument.slice(argument.startsWith('--') ? 2 : 1);
  if (body.startsWith('-') || body.startsWith('=')) throw new FlagError(`bad flag syntax: ${argument}`);
  const equals = body.indexOf('=');
  return equals === -1
    ? { name: body, value: undefined }
    : { name: body.slice(0, equals), value: body.slice(equals + 1) };
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((text) => [text, false] as const),
]);

function readBoolean(name: string, text: string): boolean {
  const value = BOOLEANS.get(text);
  if (value === undefined) throw new FlagError(`invalid value "${text}" for flag -${name}: true or false expected`);
  return value;
}

function readNumber(name: string, text: string, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= max)) {
    throw new FlagError(`invalid value "${text}" for flag -${name}: a whole number from 0 to ${max} expected`);
  }
  return value;
}

/** The lines that a program's help says about its flags, aligned, each line at the width that the longest flag asks for. */
export function flagHelp(spec: FlagSpec): string {
  const rows = [
    ...Object.entries(spec).map(([name, flag]) => [signature(name, flag), flag.help + note(flag)] as const),
    ['-h, -help', 'print this help'] as const,
  ];
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join('');
}

function signature(name: string, flag: Flag): string {
  return flag.kind === 'boolean' ? `-${name}` : `-${name} ${flag.placeholder}`;
}

function note(flag: Flag): string {
  if (flag.kind === 'strings') return ' (repeatable)';
  if (flag.kind === 'boolean' || flag.default === '' || flag.default === 0) return '';
  return ` (default ${flag.default})`;
}
