import { join } from 'node:path';
import { nameOf, readSoaks, soakSection, verdictsOf } from '../../bench/soak/report';
import { headline, replaceSections, sectionsOf, sizing } from '../../bench/suite/report/pages';
import { readResults } from '../../bench/suite/results';
import { SCENARIOS } from '../../bench/suite/scenarios/scenarios';
import { ROOT, readMarkdown } from './markdown-files';

const RESULTS = join(ROOT, 'bench/results');
const results = readResults(RESULTS);
const soaks = readSoaks(join(RESULTS, 'soak.json'));

describe('the published results', () => {
  it('have every scenario at three paces, with the default settings', () => {
    expect(results.decisions.map(({ store, load }) => `${store}/${load}`)).toEqual(SCENARIOS.map(({ name }) => name));
    for (const { paced } of results.decisions) expect(paced.map(({ share }) => share)).toEqual([0.25, 0.5, 0.75]);
    expect(results.memory.map(({ keys }) => keys)).toEqual([1_000_000, 1_000_000, 1_000_000]);
    expect(results.settings).toEqual({});
  });

  it('have no call that failed or was answered wrongly', () => {
    const phases = results.decisions.flatMap(({ saturation, paced }) => [
      saturation,
      ...paced.map(({ phase }) => phase),
    ]);

    expect(phases.filter(({ calls }) => calls.failed + calls.unexpected > 0)).toEqual([]);
  });

  it('of soaks are those of each store and of several workers, took ten minutes, and show what they have to', () => {
    expect(soaks.map(({ setup }) => nameOf(setup))).toEqual(['Redis', 'memory', 'memory, 2 workers']);
    for (const soak of soaks) {
      expect(soak.seconds).toBeGreaterThanOrEqual(600);
      expect(verdictsOf(soak).filter(([, holds]) => !holds)).toEqual([]);
    }
  });

  it.each([
    ['docs/performance.md', { ...sectionsOf(results), soak: soakSection(soaks) }],
    ['docs/sizing.md', { sizing: sizing(results) }],
    ['README.md', { headline: headline(results) }],
  ])('are those of the tables in %s', (name, sections) => {
    const page = readMarkdown(name);

    expect(page).toBe(replaceSections(page, sections));
  });
});

test('a page without a marker is an error', () => {
  expect(() => replaceSections('# Performance', { cost: '' })).toThrow('<!-- bench:cost -->');
});
