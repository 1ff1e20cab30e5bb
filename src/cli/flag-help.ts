import type { Flag, FlagSpec } from './flags';

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
