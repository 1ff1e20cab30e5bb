import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT, anchorsOf, readMarkdown } from './markdown-files';

interface Alerts {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly annotations: Readonly<Record<string, string>> }[];
  }[];
}

const FILE = join(ROOT, 'examples/observability/weir-alerts.yaml');
const alerts = (parse(readFileSync(FILE, 'utf8')) as Alerts).groups.flatMap(({ rules }) => rules);

test('every alert names its section of the runbook', () => {
  const anchors = anchorsOf('docs/runbook.md');

  expect(alerts.length).toBeGreaterThan(11);
  for (const { alert, annotations } of alerts) {
    expect([alert, annotations['runbook']]).toEqual([alert, `docs/runbook.md#${alert.toLowerCase()}`]);
    expect([alert, anchors.has(alert.toLowerCase())]).toEqual([alert, true]);
  }
});

test('every section about an alert in the runbook, and every row of its table, is about an alert that exists, in the same order', () => {
  const page = readMarkdown('docs/runbook.md');
  const sections = Array.from(page.matchAll(/^## (Weir\w+)$/gm), ([, name]) => name);
  const rows = Array.from(page.matchAll(/^\| \[(Weir\w+)\]/gm), ([, name]) => name);

  expect(sections).toEqual(alerts.map(({ alert }) => alert));
  expect(rows).toEqual(sections);
});
