import type { DebugEndpoint } from './endpoint';

/** The origin of the active rules, human-readable. */
export interface RulesInfo {
  /** The active rules; undefined before the first successful load. */
  readonly loaded: { readonly source: string; readonly version: string; readonly at: Date } | undefined;
  /** The last load after that, if it was rejected; undefined when the active rules are the latest. */
  readonly rejected: { readonly reason: string; readonly at: Date } | undefined;
}

/** `/rlconfig`: the origin of the active rules as comment lines, then one line per rule. */
export function rlconfig(info: () => RulesInfo, rules: () => readonly string[]): DebugEndpoint {
  return {
    path: '/rlconfig',
    description: 'the active rules, one per line, and their origin',
    get: (ctx) => {
      ctx.type = 'text/plain';
      ctx.body = [...originLines(info()), ...rules()].map((line) => `${line}\n`).join('');
    },
  };
}

function originLines({ loaded, rejected }: RulesInfo): string[] {
  const lines =
    loaded === undefined
      ? ['no configuration loaded yet']
      : [`from ${loaded.source}`, `version ${loaded.version}`, `loaded ${loaded.at.toISOString()}`];
  if (rejected !== undefined) {
    lines.push(`load rejected ${rejected.at.toISOString()}, keeping the active rules:`);
    for (const line of rejected.reason.split(/\r?\n/)) lines.push(`  ${line}`);
  }
  return lines.map((line) => `# ${line}`);
}
