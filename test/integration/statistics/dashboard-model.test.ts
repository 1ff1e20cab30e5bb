import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ImportableDashboard } from './dashboard-model';

const DASHBOARD = join(__dirname, '../../../examples/observability/weir-dashboard.json');
const MODEL = join(__dirname, 'dashboard-model');
const COMPILER = join(__dirname, '../../../node_modules/typescript/bin/tsc');
/** The schema version of Grafana 10.3; Grafana migrates older dashboards from there. */
const SCHEMA_VERSION = 39;
const COLUMNS = 24;

let text: string;
let dashboard: ImportableDashboard;
beforeAll(async () => {
  text = await readFile(DASHBOARD, 'utf8');
  dashboard = JSON.parse(text) as ImportableDashboard;
});

/** The compiler's errors for a dashboard; empty when it is valid. */
async function compilerErrors(json: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'weir-dashboard-'));
  const file = join(folder, 'dashboard.ts');
  try {
    await writeFile(
      file,
      `import type { ImportableDashboard } from '${MODEL}';\nexport const dashboard: ImportableDashboard = ${json};\n`,
    );
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--types', '', '--target', 'es2022'];
    const args = [COMPILER, ...options, '--module', 'node20', file];
    return await new Promise((resolve) => {
      execFile(process.execPath, args, { cwd: folder }, (_, stdout, stderr) => resolve(stdout + stderr));
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

describe('the example dashboard', () => {
  it("conforms to Grafana's types", async () => {
    expect(await compilerErrors(text)).toBe('');
  });

  it.each([
    ['a panel of an unknown kind', '"type": "stat"', '"type": "status"'],
    ['an unknown choice', '"placement": "bottom"', '"placement": "below"'],
    ['an unknown option', '"drawStyle": "line"', '"drawingStyle": "line"'],
    ['a position that is not a number', '"w": 8', '"w": "8"'],
    ['an unknown member', '"schemaVersion"', '"schemaNumber"'],
    ['a variable of an unknown kind', '"type": "query"', '"type": "ask"'],
  ])('would not conform with %s', async (_, from, to) => {
    expect(text).toContain(from);
    expect(await compilerErrors(text.replace(from, to))).toMatch(/error TS/);
  });

  it('has a schema version that Grafana reads, and no id of the instance that it was created on', () => {
    expect(dashboard.schemaVersion).toBe(SCHEMA_VERSION);
    expect(dashboard.id).toBeNull();
    expect(dashboard.uid).toMatch(/^[\w-]{1,40}$/);
  });

  it('has a variable for the data source, and uses no other data source', () => {
    const [first] = dashboard.templating.list;
    expect(first).toMatchObject({ name: 'datasource', type: 'datasource', query: 'prometheus' });
    const uids = [...text.matchAll(/"uid": "([^"]*)"/g)].map(([, uid]) => uid);
    expect(new Set(uids)).toEqual(new Set(['weir', '${datasource}']));
  });

  it('defines every variable that it uses, after those that it depends on', () => {
    const known = new Set<string>();
    function used(of: unknown) {
      return [...JSON.stringify(of).matchAll(/\$\{?(?!__)([a-z]\w*)/g)].map(([, name]) => name as string);
    }
    for (const variable of dashboard.templating.list) {
      expect([variable.name, used(variable).filter((name) => !known.has(name))]).toEqual([variable.name, []]);
      known.add(variable.name ?? '');
    }
    expect(new Set(used(dashboard.panels))).toEqual(known);
  });

  it('has unique panel ids, and unique query letters in each panel', () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    for (const panel of panels) {
      if (panel.type === 'row') continue;
      const letters = panel.targets.map(({ refId }) => refId);
      expect(letters).toEqual(['A', 'B', 'C', 'D', 'E', 'F'].slice(0, letters.length));
      expect(letters).not.toEqual([]);
    }
  });

  it('covers the grid with panels without gaps or overlaps', () => {
    const { panels } = dashboard;
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos: { x, w } }) => x + w))).toBe(COLUMNS);
    const bottom = Math.max(...panels.map(({ gridPos: { y, h } }) => y + h));
    expect(cells.length).toBe(COLUMNS * bottom);
  });
});
