import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const FILE = join(__dirname, '../../../docs/statistics.md');

/** A row of docs/statistics.md. */
export interface DocumentedStatistic {
  /** As written, with placeholders such as `<key>`. */
  readonly written: string;
  /** Matches the names that the row documents. */
  readonly name: RegExp;
  readonly kind: 'counter' | 'gauge' | 'timer';
  /** Matches its names in Prometheus. */
  readonly metric: RegExp;
}

export const DOCUMENTED: readonly DocumentedStatistic[] = readFileSync(FILE, 'utf8')
  .split('\n')
  .flatMap((line) => {
    const [, written, kind, metric] =
      /^\| `([\w.<>]+)` \| (counter|gauge|timer) \|.*\|(?: `([\w]+)[^|]*)? ?\|$/.exec(line) ?? [];
    if (written === undefined) return [];
    return [
      {
        written,
        name: pattern(written.replaceAll('.', '\\.'), '.+'),
        kind: kind as DocumentedStatistic['kind'],
        metric: metric === undefined ? pattern(written.replaceAll('.', '_'), '\\w+') : new RegExp(`^${metric}$`),
      },
    ];
  });

/** The documented values of `<rejection>`. */
export function documentedRejections(): readonly string[] {
  const [, list = ''] = /`<rejection>` is one of([\s\S]*)$/.exec(readFileSync(FILE, 'utf8')) ?? [];
  return [...list.matchAll(/`(\w+)`/g)].map(([, kind]) => kind as string);
}

/** The documented values of `<refusal>`. */
export function documentedRefusals(): readonly string[] {
  const [, table = ''] = /`<refusal>` is one of:([\s\S]*?)\n## /.exec(readFileSync(FILE, 'utf8')) ?? [];
  return [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, kind]) => kind as string);
}

function pattern(written: string, any: string): RegExp {
  return new RegExp(`^${written.replaceAll(/<\w+>/g, any)}$`);
}
