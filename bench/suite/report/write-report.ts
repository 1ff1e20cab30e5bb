import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Results } from '../results';
import { headline } from './headline';
import { chartsOf, sectionsOf } from './page';
import { replaceSections } from './sections';
import { sizing } from './sizing';

/** Writes the figures of the results into docs/performance.md, docs/sizing.md and README.md, and the charts next to that page. */
export function renderPage(root: string, results: Results): void {
  writeCharts(join(root, 'docs/performance'), results);
  renderSections(join(root, 'docs/performance.md'), sectionsOf(results));
  renderSections(join(root, 'docs/sizing.md'), { sizing: sizing(results) });
  renderSections(join(root, 'README.md'), { headline: headline(results) });
}

/** Writes a page with only the tables and charts; returns its tables. */
export function writeReport(folder: string, results: Results): string {
  writeCharts(folder, results);
  const measured = Object.entries(sectionsOf(results)).filter(([name]) => isMeasured(name, results));
  const tables = measured.map(([, table]) => table).join('\n\n');
  const charts = Object.keys(chartsOf(results)).map((name) => `![${name}](${name})`);
  writeFileSync(join(folder, 'report.md'), `${[tables, ...charts].join('\n\n')}\n`);
  return tables;
}

function isMeasured(section: string, { decisions, memory, events }: Results): boolean {
  if (section === 'memory') return memory.length > 0;
  if (section === 'events') return events.length > 0;
  return section === 'machine' || decisions.length > 0;
}

function writeCharts(folder: string, results: Results): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, svg] of Object.entries(chartsOf(results))) writeFileSync(join(folder, name), svg);
}

export function renderSections(file: string, sections: Readonly<Record<string, string>>): void {
  writeFileSync(file, replaceSections(readFileSync(file, 'utf8'), sections));
}
