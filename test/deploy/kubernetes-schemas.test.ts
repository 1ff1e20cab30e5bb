import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv2020 from 'ajv/dist/2020';
import { type Manifest, ROOT, renderingOf, renderings } from './manifests';

interface Schemas {
  readonly kinds: Readonly<Record<string, object>>;
  readonly definitions: Readonly<Record<string, object>>;
}

/** The strict schemas of Kubernetes and of the Prometheus operator: see test/README.md. */
const schemas = JSON.parse(readFileSync(join(ROOT, 'test/deploy/schemas.json'), 'utf8')) as Schemas;
// All of them in one document, and references as calls: compiling is most of the time of this file.
const ajv = new Ajv2020({
  strict: false,
  validateSchema: false,
  validateFormats: false,
  allErrors: true,
  inlineRefs: false,
});
ajv.addSchema({ $id: 'kubernetes', ...schemas });
const kinds = Object.keys(schemas.kinds);
const validators = new Map(
  kinds.map((kind) => [kind, ajv.getSchema(`kubernetes#/kinds/${kind.replaceAll('/', '~1')}`)!] as const),
);

function complaintsAbout(manifest: Manifest): readonly string[] {
  const kind = `${manifest.apiVersion}/${manifest.kind}`;
  const validate = validators.get(kind);
  if (validate === undefined) return [`there is no schema of ${kind}`];
  return validate(manifest)
    ? []
    : validate.errors!.map(({ instancePath, message }) => `${kind}${instancePath} ${message}`);
}

/** The paths of all nulls, which Kubernetes would take for absent values. */
function nullsIn(value: unknown, path = ''): readonly string[] {
  if (value === null) return [path];
  if (typeof value !== 'object') return [];
  return Object.entries(Object(value)).flatMap(([key, inner]) => nullsIn(inner, `${path}/${key}`));
}

/** A copy of the Deployment with a part replaced. */
function changed(pattern: RegExp, replacement: string): Manifest {
  const text = JSON.stringify(renderingOf('memory').one('Deployment'));
  expect(text).toMatch(pattern);
  return JSON.parse(text.replace(pattern, replacement)) as Manifest;
}

describe.each(renderings().map((rendering) => [rendering.name, rendering] as const))(
  'the manifests of the variant %s',
  (_name, { manifests }) => {
    it('are valid for Kubernetes, without unknown fields', () => {
      expect(manifests.length).toBeGreaterThan(2);
      expect(manifests.flatMap(complaintsAbout)).toEqual([]);
    });

    it('have a value in every field', () => {
      expect(manifests.flatMap((manifest) => nullsIn(manifest, manifest.kind))).toEqual([]);
    });
  },
);

describe('the schemas of Kubernetes', () => {
  it.each([
    ['an unknown field', /"replicas"/, '"replikas"', /must NOT have additional properties/],
    ['a text for a number', /"containerPort":\d+/, '"containerPort":"8080"', /containerPort must be integer/],
    ['an unknown field of a Pod', /"livenessProbe"/, '"livelyProbe"', /must NOT have additional properties/],
    ['a missing field', /"name":"weir","image"/, '"image"', /must have required property 'name'/],
  ])('find %s', (_fault, pattern, replacement, message) => {
    expect(complaintsAbout(changed(pattern, replacement))).toEqual([expect.stringMatching(message)]);
  });

  it('are used for every kind that is rendered, and for no others', () => {
    const rendered = renderings().flatMap(({ manifests }) => manifests.map((it) => `${it.apiVersion}/${it.kind}`));
    expect(kinds.toSorted()).toEqual([...new Set(rendered)].toSorted());
  });
});
