import { KEY_TOLERANCE, nearestName } from '../text/nearest-name';

/** A flag of a program. */
export interface Flag<Value = unknown> {
  /** The name of the value in the help, for example `host:port`; undefined: it is set by its name alone. */
  readonly placeholder: string | undefined;
  readonly help: string;
  readonly byDefault: Value;
  /** Undefined for an invalid text. A list adds the value to those before. */
  read(text: string, before: Value): Value | undefined;
  /** What is valid, for messages. */
  readonly expected: string;
  readonly isList?: boolean;
  /** Another name, which comes first in the help: that of the Go program. */
  readonly alias?: string;
}

/** A placeholder `file` or `PATH` is completed by the names of files. */
export function textFlag(placeholder: string, help: string, byDefault = ''): Flag<string> {
  return { placeholder, help, byDefault, read: (text) => text, expected: placeholder };
}

/** Can be repeated; the values are kept in order. */
export function listFlag(placeholder: string, help: string): Flag<readonly string[]> {
  const byDefault: string[] = [];
  const flag: Flag<string[]> = {
    ...{ placeholder, help, byDefault, expected: placeholder, isList: true },
    read(text, before) {
      const values = before === byDefault ? [] : before;
      values.push(text);
      return values;
    },
  };
  return flag;
}

/** A whole number from 0 to `max`. */
export function numberFlag(max: number, help: string, byDefault = 0): Flag<number> {
  const read: Flag<number>['read'] = (text) => (/^\d+$/.test(text) && Number(text) <= max ? Number(text) : undefined);
  return { placeholder: 'n', help, byDefault, read, expected: `a whole number from 0 to ${max}` };
}

/** A number from 0 to `max`, with up to three decimals. */
export function decimalFlag(max: number, help: string, byDefault = 0): Flag<number> {
  const read: Flag<number>['read'] = (text) =>
    /^\d+(?:\.\d{1,3})?$/.test(text) && Number(text) <= max ? Number(text) : undefined;
  return { placeholder: 'n', help, byDefault, read, expected: `a number from 0 to ${max}` };
}

/** One of several names; by default the first. */
export function choiceFlag<Name extends string>(
  names: readonly [Name, ...(readonly Name[])],
  help: string,
): Flag<Name> {
  const read: Flag<Name>['read'] = (text) => names.find((name) => name === text);
  return { placeholder: names.join('|'), help, byDefault: names[0], read, expected: `one of ${names.join(', ')}` };
}

const TRUE = ['1', 't', 'T', 'true', 'TRUE', 'True'];
const FALSE = ['0', 'f', 'F', 'false', 'FALSE', 'False'];

export function booleanFlag(help: string): Flag<boolean> {
  const read: Flag<boolean>['read'] = (text) => (TRUE.includes(text) ? true : FALSE.includes(text) ? false : undefined);
  return { placeholder: undefined, help, byDefault: false, read, expected: 'true or false' };
}

/** The flags of a program, by name without dashes. */
export type FlagSpec = Readonly<Record<string, Flag>>;

export type FlagValues<Spec extends FlagSpec> = {
  readonly [Name in keyof Spec]: Spec[Name] extends Flag<infer Value> ? Value : never;
};

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

const INFORMATION: ReadonlyMap<string, Information> = new Map([
  ['h', 'help'],
  ['help', 'help'],
  ['version', 'version'],
]);

/**
 * Parses a command line (without program name) like Go's `flag` package, so that the command lines of the Go programs
 * work unchanged: `-name value` or `-name=value`, with one or two dashes. A boolean flag is set by its name alone or as
 * `-name=false`. Unlike there, flags may follow other arguments; after `--` there are none. If a flag is repeated, its
 * last value is used.
 *
 * @throws {FlagError} for an unknown flag, a missing value, or an invalid value
 */
export function parseFlags<const Spec extends FlagSpec>(argv: readonly string[], spec: Spec): ParsedFlags<Spec> {
  const flags = new Map<string, Flag>(Object.entries(spec));
  const values = Object.fromEntries(Array.from(flags, ([name, { byDefault }]) => [name, byDefault]));
  const rest: string[] = [];
  let information: Information | undefined;
  const left = argv.values();
  for (const argument of left) {
    if (argument === '--') break;
    if (argument === '-' || !argument.startsWith('-')) {
      rest.push(argument);
      continue;
    }
    const { name: given, value } = splitArgument(argument);
    const [name, flag] = [...flags].find(([each, { alias }]) => each === given || alias === given) ?? [given];
    if (flag === undefined) {
      information = INFORMATION.get(name);
      if (information !== undefined) break;
      throw unknownFlag(name, spec);
    }
    const text = value ?? (flag.placeholder === undefined ? 'true' : left.next().value);
    if (text === undefined) throw new FlagError(`missing value: -${name} ${flag.placeholder}`);
    values[name] = flag.read(text, values[name]);
    if (values[name] === undefined)
      throw new FlagError(`invalid value "${text}" for flag -${name}: expected ${flag.expected}`);
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each value is read by its flag
  return { information, values: values as FlagValues<Spec>, rest: [...rest, ...left] };
}

function unknownFlag(name: string, spec: FlagSpec): FlagError {
  const nearest = nearestName(name, [...Object.keys(spec), ...INFORMATION.keys()], KEY_TOLERANCE);
  return new FlagError(`unknown flag -${name}${nearest === undefined ? '' : `; did you mean -${nearest}?`}`);
}

function splitArgument(argument: string): { readonly name: string; readonly value: string | undefined } {
  const [, name, value] = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(argument) ?? [];
  if (name === undefined) throw new FlagError(`invalid flag ${argument}: expected -name or -name=value`);
  return { name, value };
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

function signature(name: string, { alias, placeholder }: Flag): string {
  const names = alias === undefined ? `-${name}` : `-${alias}, -${name}`;
  return placeholder === undefined ? names : `${names} ${placeholder}`;
}

function note({ isList, byDefault }: Flag): string {
  if (isList === true) return ' (repeatable)';
  return byDefault !== '' && byDefault !== 0 && byDefault !== false ? ` (default ${String(byDefault)})` : '';
}
