// npm run chart: completes the Helm chart of deploy/helm/weir with what follows from other files, packs it, and renders
// plain manifests from each ci/*-values.yaml. Writes to release/, or to the folder of --out. With --values, prints what
// these files are rendered to instead, as JSON: see helm.py. Needs a build, and the Helm of
// `node scripts/prepare.mjs --helm`.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BUILD_STAMP, ROOT, isStale, printStatus } from './workspace.mjs';

const require = createRequire(import.meta.url);
const SOURCE = join(ROOT, 'deploy/helm/weir');
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/** Helm reads no file outside of the chart. */
function complete(chart) {
  cpSync(SOURCE, chart, { recursive: true });
  mkdirSync(join(chart, 'files'));
  cpSync(join(ROOT, 'examples/config'), join(chart, 'files/rules'), { recursive: true });
  for (const name of ['weir-alerts.yaml', 'weir-dashboard.json']) {
    cpSync(join(ROOT, 'examples/observability', name), join(chart, 'files', name));
  }
  const metadata = join(chart, 'Chart.yaml');
  writeFileSync(metadata, readFileSync(metadata, 'utf8').replace(/^appVersion: .*$/m, `appVersion: ${version}`));
  const file = join(chart, 'values.schema.json');
  const schema = JSON.parse(readFileSync(file, 'utf8'));
  Object.assign(schema.definitions, nameDefinitions());
  writeFileSync(file, `${JSON.stringify(schema, undefined, 2)}\n`);
}

/**
 * A schema that accepts these keys and no others. Helm's message for it names the key, and not all that are permitted.
 */
function onlyKeys(schemas, patterns = []) {
  const properties = Object.entries(schemas).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(properties),
    ...(patterns.length > 0 && {
      patternProperties: Object.fromEntries(patterns.map((pattern) => [pattern, SETTING_VALUE])),
    }),
  };
}

const SETTING_VALUE = { $ref: '#/definitions/settingValue' };
const SECRET = { $ref: '#/definitions/secret' };
const TOKEN = { allOf: [SECRET, { properties: { value: { minLength: 16, maxLength: 1024, pattern: '^[!-~]+$' } } }] };

/**
 * The definitions that list names of settings: which ones `settings`, `secrets` and `extraEnv` accept, and their
 * values.
 */
function nameDefinitions() {
  const dist = join(ROOT, 'dist/settings');
  const { settingRows, settingsTable } = require(join(dist, 'table/settings-table.js'));
  const { fileNamesOf, namesOf } = require(join(dist, 'table/setting.js'));
  const rows = settingRows.map((row) => ({ names: namesOf(row), files: fileNamesOf(row), schema: row.type.schema }));
  // Names in capital letters in the template of the environment.
  const template = readFileSync(join(SOURCE, 'templates/_environment.tpl'), 'utf8');
  const determined = new Set(template.match(/\b[A-Z][A-Z0-9_]{3,}\b/g));
  const secrets = rows.filter(({ files }) => files.length > 0).flatMap(({ names }) => names);
  const free = rows
    .filter(({ names, files }) => files.length === 0 && !names.some((name) => determined.has(name)))
    .flatMap(({ names, schema = SETTING_VALUE }) => names.map((name) => [name, schema]));
  const patterns = settingsTable
    .flatMap(({ families = [] }) => families.flatMap(({ name, alias }) => [name, alias]))
    .map((name) => `^${name.replace('<NAME>', '[A-Z0-9_]+')}$`);
  const all = rows.flatMap(({ names, files }) => [...names, ...files]);
  return {
    settings: onlyKeys(Object.fromEntries(free), patterns),
    secrets: onlyKeys({
      ...Object.fromEntries(secrets.map((name) => [name, SECRET])),
      ...{ OPERATOR_TOKEN: TOKEN, OPERATOR_PEERS_TOKEN: TOKEN },
    }),
    variableOfWeir: { anyOf: [{ enum: all.toSorted() }, ...patterns.map((pattern) => ({ pattern }))] },
  };
}

/**
 * What the chart is rendered to with each of these texts, or what Helm complains about; also packs it into the folder,
 * if that is given.
 */
function render(chart, texts, ...packed) {
  const args = [join(ROOT, 'scripts/helm.py'), join(ROOT, '.servers/helm'), chart, ...packed];
  const { stdout, stderr, status } = spawnSync('python3', args, {
    input: JSON.stringify(texts),
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  if (status === 0) return JSON.parse(stdout);
  printStatus(`cannot run Helm; node scripts/prepare.mjs --servers installs it:\n${stderr}`);
  return process.exit(1);
}

/** Manifests for users without Helm. */
function plain(manifests, from) {
  const documents = Object.entries(manifests)
    .filter(([path, text]) => !/NOTES\.txt$|\/tests\//.test(path) && text.trim() !== '')
    .map(([path, text]) => `---\n# Source: ${path}\n${text.trim()}\n`)
    // What a Deployment refers to comes first.
    .toSorted((one, other) => Number(/^kind: Deployment$/m.test(one)) - Number(/^kind: Deployment$/m.test(other)));
  return `# Rendered from deploy/helm/weir with ${from} by npm run chart.\n${documents.join('')}`
    .replaceAll(/^ +(?:helm\.sh\/chart|app\.kubernetes\.io\/managed-by): .*\n/gm, '')
    .replaceAll(/^ +$/gm, '');
}

const { values: options } = parseArgs({
  options: { out: { type: 'string', default: join(ROOT, 'release') }, values: { type: 'string', multiple: true } },
});
if (isStale(BUILD_STAMP, ['src/settings'])) {
  printStatus('src/settings has changed since the last build: run npm run build first');
  process.exit(1);
}
const chart = join(options.out, 'helm/weir');
rmSync(chart, { recursive: true, force: true });
complete(chart);
if (options.values !== undefined) {
  const texts = options.values.map((file) => readFileSync(file, 'utf8'));
  process.stdout.write(JSON.stringify(render(chart, texts)));
} else {
  const names = readdirSync(join(SOURCE, 'ci'));
  const texts = ['', ...names.map((name) => readFileSync(join(SOURCE, 'ci', name), 'utf8'))];
  const [defaults, ...results] = render(chart, texts, options.out);
  mkdirSync(join(options.out, 'kubernetes'), { recursive: true });
  for (const [index, { manifests }] of results.entries()) {
    if (manifests === undefined) continue;
    const file = join('kubernetes', names[index].replace('-values.yaml', '.yaml'));
    writeFileSync(join(options.out, file), plain(manifests, `ci/${names[index]}`));
    printStatus(`wrote ${file}`);
  }
  const problems = [defaults, ...results].flatMap(({ complaint }) => complaint ?? []);
  for (const problem of problems) printStatus(problem);
  printStatus(`the chart and its manifests are in ${options.out}; ${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
