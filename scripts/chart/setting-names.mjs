// The names of settings in values.schema.json: which ones `settings`, `secrets` and `extraEnv` accept.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../workspace.mjs';
import { CHART } from './variants.mjs';

const require = createRequire(import.meta.url);

/** The settings of the last build, each with its names and those of the variables that name its file. */
function settings() {
  const dist = join(ROOT, 'dist/settings');
  const { settingsTable } = require(join(dist, 'table/settings-table.js'));
  const { namesOf } = require(join(dist, 'table/setting.js'));
  const { fileNamesOf } = require(join(dist, 'variables/secret-file.js'));
  return settingsTable.flatMap((group) => ({
    rows: group.settings.map((row) => ({ names: namesOf(row), files: fileNamesOf(row) })),
    families: group.families ?? [],
  }));
}

/** Names in capital letters in the template of the environment. */
function determinedByValues() {
  const text = readFileSync(join(CHART, 'templates/_environment.tpl'), 'utf8');
  return new Set(text.match(/\b[A-Z][A-Z0-9_]{3,}\b/g));
}

/** A schema that accepts these keys and no others. Helm's message for it names the key, and not all that are permitted. */
function onlyKeys(names, patterns, value) {
  function entries(keys) {
    return Object.fromEntries(keys.map((key) => [key, { $ref: `#/definitions/${value}` }]));
  }
  return {
    type: 'object',
    additionalProperties: false,
    properties: entries(names.toSorted()),
    ...(patterns.length > 0 && { patternProperties: entries(patterns) }),
  };
}

/** The definitions of values.schema.json that list names. */
export function nameDefinitions() {
  const groups = settings();
  const rows = groups.flatMap((group) => group.rows);
  const determined = determinedByValues();
  const secrets = rows.filter(({ files }) => files.length > 0).flatMap(({ names }) => names);
  const free = rows
    .filter(({ names, files }) => files.length === 0 && !names.some((name) => determined.has(name)))
    .flatMap(({ names }) => names);
  const patterns = groups
    .flatMap(({ families }) => families.flatMap(({ name, alias }) => [name, alias]))
    .map((name) => `^${name.replace('<NAME>', '[A-Z0-9_]+')}$`);
  const all = rows.flatMap(({ names, files }) => [...names, ...files]);
  return {
    settings: onlyKeys(free, patterns, 'settingValue'),
    secrets: onlyKeys(secrets, [], 'secret'),
    variableOfWeir: { anyOf: [{ enum: all.toSorted() }, ...patterns.map((pattern) => ({ pattern }))] },
  };
}
