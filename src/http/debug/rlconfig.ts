import type { DebugEndpoint } from './endpoint';

/** What is in force and how it came about, for people. */
export interface RulesAbout {
  /** The rules in force; undefined before the first good load. */
  readonly loaded: { readonly source: string; readonly version: string; readonly at: Date } | undefined;
  /** The last load that failed after that; undefined when the rules in force are the latest that there were. */
  readonly rejected: { readonly reason: string; readonly at: Date } | undefined;
}

/** `/rlconfig`: where the rules in force come from, as comment lines, then a line a rule. */
export function rlconfig(about: () => RulesAbout, rules: () => readonly string[]): DebugEndpoint {
  return {
    path: '/rlconfig',
    about: 'the rules in force, one a line, and where they come from',
    get: (ctx) => {
      ctx.type = 'text/plain';
      ctx.body = [...head(about()), ...rules()].map((line) => `${line}\n`).join('');
    },
  };
}

function head({ loaded, rejected }: RulesAbout): string[] {
  const lines =
    loaded === undefined
      ? ['no configuration loaded yet']
      : [`from ${loaded.source}`, `version ${loaded.version}`, `loaded ${loaded.at.toISOString()}`];
  if (rejected !== undefined) {
    lines.push(`a load failed ${rejected.at.toISOString()}, and changed nothing:`);
    for (const line of rejected.reason.split(/\r?\n/)) lines.push(`  ${line}`);
  }
  return lines.map((line) => `# ${line}`);
}
