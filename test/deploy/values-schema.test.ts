import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import Ajv from 'ajv';
import { ROOT, readYaml } from './manifests';

type Values = Readonly<Record<string, unknown>>;

const CHART = 'deploy/helm/weir';
const REJECTED = 'test/deploy/rejected';
const defaults = readYaml(`${CHART}/values.yaml`) as Values;
const schema = JSON.parse(readFileSync(join(ROOT, CHART, 'values.schema.json'), 'utf8')) as object;
const validate = new Ajv({ strict: false, allErrors: true }).compile(schema);

/** What Helm validates: the given values over the defaults, maps merged, everything else replaced. */
function merged(base: unknown, over: unknown): unknown {
  if (!isMap(base) || !isMap(over)) return over;
  const keys = new Set([...Object.keys(base), ...Object.keys(over)]);
  return Object.fromEntries([...keys].map((key) => [key, key in over ? merged(base[key], over[key]) : base[key]]));
}

function isMap(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function complaintsAbout(values: unknown): readonly string[] {
  if (validate(merged(defaults, values))) return [];
  return validate.errors!.map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}

function variantsIn(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => `${folder}/${name}`);
}

/** The path of every value of values.yaml. */
function pathsOf(values: Values, prefix: readonly string[] = []): readonly (readonly string[])[] {
  return Object.entries(values).flatMap(([key, value]) => {
    const path = [...prefix, key];
    return isMap(value) ? [path, ...pathsOf(value, path)] : [path];
  });
}

/** Values with one entry, whose last key is misspelled. */
function misspelled(path: readonly string[]): unknown {
  const [last = '', ...parents] = path.toReversed();
  return parents.reduce<unknown>((value, key) => ({ [key]: value }), { [`${last}s`]: {} });
}

describe('values.schema.json', () => {
  it('accepts the defaults', () => {
    expect(complaintsAbout({})).toEqual([]);
  });

  it.each([...variantsIn(`${CHART}/ci`), ...variantsIn('test/deploy/variants')])('accepts %s', (path) => {
    expect(complaintsAbout(readYaml(path) ?? {})).toEqual([]);
  });

  it('rejects a misspelling of every value', () => {
    // These are passed to Kubernetes, which knows what is in them.
    const open = [
      'podSecurityContext',
      'securityContext',
      'behavior.scaleUp',
      'behavior.scaleDown',
      'dashboard.labels',
      'resources.requests',
      'resources.limits',
    ];
    const paths = pathsOf(defaults).filter(
      (path) => !open.some((prefix) => `${path.slice(0, -1).join('.')}.`.includes(`${prefix}.`)),
    );
    expect(paths.length).toBeGreaterThan(100);
    const accepted = paths.filter((path) => complaintsAbout(misspelled(path)).length === 0);
    expect(accepted.map((path) => path.join('.'))).toEqual([]);
  });

  const inSchema = variantsIn(REJECTED).filter((path) => readFileSync(join(ROOT, path), 'utf8').startsWith("# at '"));

  it.each(inSchema)('rejects %s at the place that it names', (path) => {
    const place = /^# at '([^']+)'/.exec(readFileSync(join(ROOT, path), 'utf8'))![1]!;
    expect(complaintsAbout(readYaml(path))).toContainEqual(expect.stringContaining(`${place} `));
  });
});
