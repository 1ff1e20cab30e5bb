import { KEY_TOLERANCE, nearestName } from '../text/nearest-name';

/** A flag of a program: its kind, its default and a line of help. */
export type Flag = StringFlag | StringsFlag | NumberFlag | BooleanFlag;

export interface StringFlag {
  readonly kind: 'string';
  readonly default: string;
  /** The name of the value in the help, for example `host:port`. `file` and `PATH` are completed by the names of files. */
  readonly placeholder: string;
  readonly help: string;
  /** Another name, which is in no help: that of the Go program. */
  readonly alias?: string;
}

/** Can be repeated; the values are kept in order. */
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

/** The flags of a program, by name without dashes. */
export type FlagSpec = Readonly<Record<string, Flag>>;

type ValueOf<F extends Flag> = F extends StringFlag
  ? string
  : F extends StringsFlag
    ? readonly string[]
    : F extends NumberFlag
      ? number
      : boolean;

export type FlagValues<Spec extends FlagSpec> = { readonly [Name in keyof Spec]: ValueOf<Spec[Name]> };

/** What every program prints instead of doing its work: its help (`-h`, `-help`) or its version (`-version`). */
export type Information = 'help' | 'version';

export interface ParsedFlags<Spec extends FlagSpec> {
  /** What to print, ignoring the rest of the command line; only by a name that is not a flag of the program. */
  readonly information: Information | undefined;
  readonly values: FlagValues<Spec>;
  /** The arguments that are not flags. */
  readonly rest: readonly string[];
}

/** An invalid command line; the message is one sentence for the user. */
export class FlagError extends Error {
  override readonly name = 'FlagError';
}

/**
 * Parses a command line (without program name) like Go's `flag` package, so that the command lines of the Go programs work
 * unchanged: `-name value` or `-name=value`, with one or two dashes. A boolean flag is set by its name alone or as `-name=false`.
 * Unlike there, flags may follow other arguments; after `--` there are none. If a flag is repeated, its last value is used.
 *
 * @throws {FlagError} for an unknown flag, a missing value, or an invalid value
 */
export function parseFlags<const Spec extends FlagSpec>(argv: readonly string[], spec: Spec): ParsedFlags<Spec> {
  const values: Record<string, string | string[] | number | boolean> = {};
  const aliases = new Map<string, string>();
  for (const [name, flag] of Object.entries(spec)) {
    values[name] = initialValue(flag);
    if (flag.kind === 'string' && flag.alias !== undefined) aliases.set(flag.alias, name);
  }
  function parsed(information: Information | undefined, rest: readonly string[]): ParsedFlags<Spec> {
    return {
      information,
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each value has the type of its flag's kind
      values: values as FlagValues<Spec>,
      rest,
    };
  }

  const rest: string[] = [];
  let at = 0;
  while (at < argv.length) {
    const argument = argv[at]!;
    at += 1;
    if (argument === '--') break;
    if (argument === '-' || !argument.startsWith('-')) {
      rest.push(argument);
      continue;
    }

    const { name: given, value } = splitArgument(argument);
    const name = aliases.get(given) ?? given;
    const flag = Object.hasOwn(spec, name) ? spec[name] : undefined;
    if (flag === undefined) {
      const information = INFORMATION.get(name);
      if (information !== undefined) return parsed(information, rest);
      throw unknownFlag(name, spec);
    }
    if (flag.kind === 'boolean') {
      values[name] = parseBoolean(name, value ?? 'true');
      continue;
    }
    const text = value ?? argv[at];
    if (value === undefined) at += 1;
    if (text === undefined) throw new FlagError(`missing value: -${name} ${flag.placeholder}`);
    const list = values[name];
    if (Array.isArray(list)) list.push(text);
    else values[name] = flag.kind === 'number' ? parseNumber(name, text, flag.max) : text;
  }
  return parsed(undefined, [...rest, ...argv.slice(at)]);
}

const INFORMATION: ReadonlyMap<string, Information> = new Map([
  ['h', 'help'],
  ['help', 'help'],
  ['version', 'version'],
]);

function unknownFlag(name: string, spec: FlagSpec): FlagError {
  const nearest = nearestName(name, [...Object.keys(spec), ...INFORMATION.keys()], KEY_TOLERANCE);
  return new FlagError(`unknown flag -${name}${nearest === undefined ? '' : `; did you mean -${nearest}?`}`);
}

function initialValue(flag: Flag): string | string[] | number | boolean {
  if (flag.kind === 'boolean') return false;
  return flag.kind === 'strings' ? [] : flag.default;
}

function splitArgument(argument: string): { name: string; value: string | undefined } {
  const body = argument.slice(argument.startsWith('--') ? 2 : 1);
  if (body.startsWith('-') || body.startsWith('='))
    throw new FlagError(`invalid flag ${argument}: expected -name or -name=value`);
  const equals = body.indexOf('=');
  return equals === -1
    ? { name: body, value: undefined }
    : { name: body.slice(0, equals), value: body.slice(equals + 1) };
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((text) => [text, false] as const),
]);

function parseBoolean(name: string, text: string): boolean {
  const value = BOOLEANS.get(text);
  if (value === undefined) throw new FlagError(`invalid value "${text}" for flag -${name}: expected true or false`);
  return value;
}

function parseNumber(name: string, text: string, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= max)) {
    throw new FlagError(`invalid value "${text}" for flag -${name}: expected a whole number from 0 to ${max}`);
  }
  return value;
}

/** The lines about the flags in a program's help, in two aligned columns. */
export function flagHelp(spec: FlagSpec): string {
  const rows = [
    ...Object.entries(spec).map(([name, flag]) => [signature(name, flag), flag.help + note(flag)] as const),
    ['-h, -help', 'print this help'] as const,
    ['-version', 'print the version'] as const,
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
