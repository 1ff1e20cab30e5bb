import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv from 'ajv';
import { readSoaks } from '../../bench/soak/results';
import { nameOf } from '../../bench/soak/setup';
import { soakChart } from '../../bench/soak/soak-chart';
import { chartFile, soakSection } from '../../bench/soak/soak-section';
import { verdictsOf } from '../../bench/soak/verdicts';
import { chartsOf, sectionsOf } from '../../bench/suite/report/page';
import { headline } from '../../bench/suite/report/headline';
import { replaceSections } from '../../bench/suite/report/sections';
import { sizing } from '../../bench/suite/report/sizing';
import { readResults } from '../../bench/suite/results';
import schema from '../../bench/suite/results.schema.json';
import { SCENARIOS } from '../../bench/suite/scenarios/scenarios';
import { elementsOf } from '../bench/well-formed';
import { ROOT, readMarkdown } from './markdown-files';

const RESULTS = join(ROOT, 'bench/results');
const results = readResults(RESULTS);
const soaks = readSoaks(join(RESULTS, 'soak.json'));

function chart(name: string): string {
  return readFileSync(join(ROOT, 'docs/performance', name), 'utf8');
}

describe('the published results', () => {
  it('match the schema and have every scenario, at three paces', () => {
    const validate = new Ajv().compile(schema);

    expect([validate(results), validate.errors]).toEqual([true, null]);
    expect(results.decisions.map(({ store, load }) => `${store}/${load}`)).toEqual(SCENARIOS.map(({ name }) => name));
    for (const { paced } of results.decisions) expect(paced.map(({ share }) => share)).toEqual([0.25, 0.5, 0.75]);
    expect(results.memory.map(({ keys }) => keys)).toEqual([1_000_000, 1_000_000, 1_000_000]);
    expect(results.settings).toEqual({});
  });

  it('have no call with a wrong answer, and none that failed but in events', () => {
    const phases = results.decisions.flatMap(({ saturation, paced }) => [
      saturation,
      ...paced.map(({ phase }) => phase),
    ]);

    expect(phases.filter(({ calls }) => calls.failed + calls.unexpected > 0)).toEqual([]);
  });

  it('are those of the tables and charts of docs/performance.md', () => {
    const page = readMarkdown('docs/performance.md');

    expect(page).toBe(replaceSections(page, sectionsOf(results)));
    for (const [name, svg] of Object.entries(chartsOf(results))) {
      expect(page).toContain(`(performance/${name})`);
      expect(chart(name)).toBe(svg);
      expect(elementsOf(svg)).toContain('text');
    }
  });

  it('are those of the table in docs/sizing.md', () => {
    const page = readMarkdown('docs/sizing.md');

    expect(page).toBe(replaceSections(page, { sizing: sizing(results) }));
  });

  it('are those of the table in the README', () => {
    const page = readMarkdown('README.md');

    expect(page).toBe(replaceSections(page, { headline: headline(results) }));
  });
});

describe('the published soaks', () => {
  it('are those of both stores in one process, and of several workers', () => {
    expect(soaks.map(({ setup }) => nameOf(setup))).toEqual(['Redis', 'memory', 'memory, 2 workers']);
  });

  it('took ten minutes and show what they have to', () => {
    for (const soak of soaks) {
      expect(soak.seconds).toBeGreaterThanOrEqual(600);
      expect(verdictsOf(soak).filter(([, holds]) => !holds)).toEqual([]);
    }
  });

  it('are those of the table and the charts of docs/performance.md', () => {
    const page = readMarkdown('docs/performance.md');

    expect(page).toBe(replaceSections(page, { soak: soakSection(soaks) }));
    for (const soak of soaks) expect(chart(chartFile(soak))).toBe(soakChart(soak));
  });
});

test('a page without a marker is an error', () => {
  expect(() => replaceSections('# Performance', { cost: '' })).toThrow('<!-- bench:cost -->');
});
