import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ImportableDashboard } from './dashboard-model';

const DASHBOARD = join(__dirname, '../../../examples/observability/weir-dashboard.json');
const MODEL = join(__dirname, 'dashboard-model');
const COMPILER = join(__dirname, '../../../node_modules/typescript/bin/tsc');
/** Grafana moves older ones up to its own; this is where they all begin today, of Grafana 10.3. */
const SCHEMA_VERSION = 39;
const COLUMNS = 24;

let text: string;
let dashboard: ImportableDashboard;
beforeAll(async () => {
  text = await readFile(DASHBOARD, 'utf8');
  dashboard = JSON.parse(text) as ImportableDashboard;
});

/** What the compiler says to a dashboard; nothing when it is one. */
async function complaints(json: string): Promise<string> {
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

describe('the dashboard', () => {
  it("is one by Grafana's own types", async () => {
    expect(await complaints(text)).toBe('');
  });

  it.each([
    ['a panel of an unknown kind', '"type": "stat"', '"type": "status"'],
    ['a choice that there is not', '"placement": "bottom"', '"placement": "below"'],
    ['an option that there is not', '"drawStyle": "line"', '"drawingStyle": "line"'],
    ['a place that is no number', '"w": 8', '"w": "8"'],
    ['a member that there is not', '"schemaVersion"', '"schemaNumber"'],
    ['a variable of an unknown kind', '"type": "query"', '"type": "ask"'],
  ])('would not be with %s', async (_, from, to) => {
    expect(text).toContain(from);
    expect(await complaints(text.replace(from, to))).toMatch(/error TS/);
  });

  it('is of a version that Grafana reads, and not tied to the place where it was made', () => {
    expect(dashboard.schemaVersion).toBe(SCHEMA_VERSION);
    expect(dashboard.id).toBeNull();
    expect(dashboard.uid).toMatch(/^[\w-]{1,40}$/);
  });

  it('lets one choose the data source, and uses no other', () => {
    const [first] = dashboard.templating.list;
    expect(first).toMatchObject({ name: 'datasource', type: 'datasource', query: 'prometheus' });
    const uids = [...text.matchAll(/"uid": "([^"]*)"/g)].map(([, uid]) => uid);
    expect(new Set(uids)).toEqual(new Set(['weir', '${datasource}']));
  });

  it('uses only variables that it has, each after those that it depends on', () => {
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

  it('has panels with an id of their own, and queries that each have a letter of their own', () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    for (const panel of panels) {
      if (panel.type === 'row') continue;
      const letters = panel.targets.map(({ refId }) => refId);
      expect(letters).toEqual(['A', 'B', 'C', 'D', 'E', 'F'].slice(0, letters.length));
      expect(letters).not.toEqual([]);
    }
  });

  it('has panels that lie within the grid, without a hole and without overlapping', () => {
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
