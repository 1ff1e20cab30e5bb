// Writes test/deploy/schemas.json, the schemas of the objects that the chart renders: node
// scripts/kubernetes-schemas.mjs FOLDER CRDS
//
// FOLDER has the schemas of one version of Kubernetes, for example kubernetes-json-schema/v1.37.0-local-strict of the
// Python package kubernetes-validate; CRDS has the custom resource definitions of the Prometheus operator
// (example/prometheus-operator-crd in its repository) and of the Gateway API (config/crd/standard). Descriptions are
// left out, and what several kinds share is there once.
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parse } from 'yaml';
import { ROOT, printStatus } from './workspace.mjs';

const PREFIX = '#/definitions/';
/** The definitions of the built-in kinds by API version and kind. */
const KINDS = {
  'v1/ConfigMap': 'io.k8s.api.core.v1.ConfigMap',
  'v1/Pod': 'io.k8s.api.core.v1.Pod',
  'v1/Secret': 'io.k8s.api.core.v1.Secret',
  'v1/Service': 'io.k8s.api.core.v1.Service',
  'v1/ServiceAccount': 'io.k8s.api.core.v1.ServiceAccount',
  'apps/v1/Deployment': 'io.k8s.api.apps.v1.Deployment',
  'autoscaling/v2/HorizontalPodAutoscaler': 'io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler',
  'networking.k8s.io/v1/Ingress': 'io.k8s.api.networking.v1.Ingress',
  'networking.k8s.io/v1/NetworkPolicy': 'io.k8s.api.networking.v1.NetworkPolicy',
  'policy/v1/PodDisruptionBudget': 'io.k8s.api.policy.v1.PodDisruptionBudget',
};
const CUSTOM = [
  'gateway.networking.k8s.io_grpcroutes',
  'monitoring.coreos.com_prometheusrules',
  'monitoring.coreos.com_servicemonitors',
];

const [folder, customs] = process.argv.slice(2);
if (folder === undefined || customs === undefined) {
  printStatus('usage: node scripts/kubernetes-schemas.mjs FOLDER CRDS');
  process.exit(1);
}
const { $defs: definitions } = JSON.parse(readFileSync(join(folder, '_definitions.json'), 'utf8'));

/** A schema without descriptions, with references within one document. */
function compact(value) {
  if (Array.isArray(value)) return value.map(compact);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value)
    // A property may be named description; then its value is a schema.
    .filter(([key, inner]) => !key.startsWith('x-kubernetes-') && !(key === 'description' && typeof inner === 'string'))
    // A flag of Go, in the middle of a pattern.
    .filter(([key, inner]) => !(key === 'pattern' && String(inner).includes('(?i)')))
    .map(([key, inner]) => [key, key === '$ref' ? `${PREFIX}${inner.split('/').at(-1)}` : compact(inner)]);
  return Object.fromEntries(entries);
}

function referencesIn(value) {
  if (typeof value !== 'object' || value === null) return [];
  const own = typeof value.$ref === 'string' ? [value.$ref.slice(PREFIX.length)] : [];
  return [...own, ...Object.values(value).flatMap(referencesIn)];
}

/** The definitions that can be reached from the names. */
function reachable(names) {
  const found = new Map();
  for (const pending = [...names]; pending.length > 0;) {
    const name = pending.pop();
    if (found.has(name)) continue;
    found.set(name, compact(definitions[name]));
    pending.push(...referencesIn(found.get(name)));
  }
  return Object.fromEntries([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** A schema of a custom resource definition, which rejects unknown properties as the schemas of Kubernetes do. */
function strict(schema) {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(strict);
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, strict(value)]));
  const isClosed =
    schema.type === 'object' && typeof schema.properties === 'object' && !('additionalProperties' in schema);
  return isClosed ? { ...inner, additionalProperties: false } : inner;
}

const kinds = Object.fromEntries(Object.entries(KINDS).map(([kind, name]) => [kind, { $ref: `${PREFIX}${name}` }]));
const metadata = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
for (const name of CUSTOM) {
  const { spec } = parse(readFileSync(join(customs, `${name}.yaml`), 'utf8'));
  const version = spec.versions.find(({ storage }) => storage);
  const schema = strict(compact(version.schema.openAPIV3Schema));
  schema.properties.metadata = { $ref: `${PREFIX}${metadata}` };
  delete schema.properties.status;
  kinds[`${spec.group}/${version.name}/${spec.names.kind}`] = schema;
}
const text = JSON.stringify({
  source: basename(folder),
  kinds,
  definitions: reachable([...Object.values(KINDS), metadata]),
});
writeFileSync(join(ROOT, 'test/deploy/schemas.json'), `${text}\n`);
printStatus(`wrote test/deploy/schemas.json: ${Object.keys(kinds).length} kinds, ${text.length} bytes`);
