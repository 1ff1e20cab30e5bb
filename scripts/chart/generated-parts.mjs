// The parts of the chart that follow from other files of the project.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { ROOT } from '../workspace.mjs';
import { nameDefinitions } from './setting-names.mjs';
import { valuesTable } from './values-table.mjs';

const CHART = 'deploy/helm/weir';
const TABLE = /(?<=<!-- values -->\n\n).*?(?=\n\n<!-- \/values -->)/s;

function read(file) {
  return readFileSync(join(ROOT, file), 'utf8');
}

/** Helm reads no file outside of the chart. */
function copies() {
  const monitoring = ['weir-alerts.yaml', 'weir-dashboard.json'].map((name) => ({
    path: `${CHART}/files/${name}`,
    text: read(`examples/observability/${name}`),
  }));
  const rules = readdirSync(join(ROOT, 'examples/config')).map((name) => ({
    path: `${CHART}/files/rules/${name}`,
    text: read(`examples/config/${name}`),
  }));
  return [...monitoring, ...rules];
}

async function schema() {
  const path = `${CHART}/values.schema.json`;
  const current = JSON.parse(read(path));
  const next = { ...current, definitions: { ...current.definitions, ...nameDefinitions() } };
  const options = await resolveConfig(join(ROOT, path));
  return { path, text: await format(JSON.stringify(next), { ...options, filepath: path }) };
}

function readme() {
  const path = `${CHART}/README.md`;
  const text = read(path);
  if (!TABLE.test(text)) throw new Error(`${path} has no place for the table of values`);
  return { path, text: text.replace(TABLE, () => valuesTable(read(`${CHART}/values.yaml`))) };
}

/** The version of the service that the chart installs. */
function metadata() {
  const path = `${CHART}/Chart.yaml`;
  const { version } = JSON.parse(read('package.json'));
  return { path, text: read(path).replace(/^appVersion: .*$/m, `appVersion: ${version}`) };
}

/** The files that renderings depend on, each with its path relative to the root and the text that it should have. */
export function includedParts() {
  return [...copies(), metadata()];
}

/** The other files. */
export async function describingParts() {
  return [await schema(), readme()];
}
