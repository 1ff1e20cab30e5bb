import type { DebugEndpoint } from './endpoint';
import { SharedPage } from './shared-page';
import { sortedInTurns } from './sorted-in-turns';

/** The origin of the active rules, human-readable. */
export interface RulesInfo {
  /** The active rules; undefined before the first successful load. */
  readonly loaded: { readonly source: string; readonly version: string; readonly at: Date } | undefined;
  /** The last load after that, if it was rejected; undefined when the active rules are the latest. */
  readonly rejected: { readonly reason: string; readonly at: Date } | undefined;
}

/** The line of each active rule, in any order; each part in a turn of the event loop of its own. */
export type ReadRules = () => AsyncIterable<readonly string[]>;

/** `/rlconfig`: the origin of the active rules as comment lines, then one line per rule, sorted. */
export function rlconfig(info: () => RulesInfo, rules: ReadRules): DebugEndpoint {
  const page = new SharedPage(() => pageOf(info(), rules()));
  return {
    path: '/rlconfig',
    description: 'the active rules, one per line, and their origin',
    get: async (ctx) => {
      ctx.type = 'text/plain';
      ctx.body = await page.text();
    },
  };
}

async function* pageOf(info: RulesInfo, rules: AsyncIterable<readonly string[]>): AsyncIterableIterator<string> {
  yield joined(originLines(info));
  for await (const part of sortedInTurns(rules, (line) => line)) yield joined(part);
}

function joined(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
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
