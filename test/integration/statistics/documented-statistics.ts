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
  /** Its labels in Prometheus. */
  readonly labels: readonly string[];
}

export const DOCUMENTED: readonly DocumentedStatistic[] = readFileSync(FILE, 'utf8')
  .split('\n')
  .flatMap((line) => {
    const [, written, kind = 'counter', metric, labels] =
      /^\| `([\w<>]+\.[\w.<>]+)` \| (?:(gauge|timer): )?[^|]*?(?:Prometheus: `(\w+)(?:\{([\w,]+)\})?`[^|`]*)? \|$/.exec(
        line,
      ) ?? [];
    if (written === undefined) return [];
    return [
      {
        written,
        name: pattern(written.replaceAll('.', '\\.'), '.+'),
        kind: kind as DocumentedStatistic['kind'],
        metric: metric === undefined ? pattern(written.replaceAll('.', '_'), '\\w+') : new RegExp(`^${metric}$`),
        labels: labels?.split(',') ?? [],
      },
    ];
  });

/** The documented values of `<rejection>` or `<refusal>`. */
export function documentedKinds(placeholder: 'rejection' | 'refusal'): readonly string[] {
  const text = readFileSync(FILE, 'utf8');
  const [, list = ''] = new RegExp(`\\\`<${placeholder}>\\\` is one of(.*?)(?:\n## |$)`, 's').exec(text) ?? [];
  return Array.from(list.matchAll(placeholder === 'refusal' ? /^\| `(\w+)` \|/gm : /`(\w+)`/g), ([, kind]) => kind!);
}

function pattern(written: string, any: string): RegExp {
  return new RegExp(`^${written.replaceAll(/<\w+>/g, any)}$`);
}
