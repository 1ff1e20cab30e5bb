import { LocalOperator } from '../../../src/main/operators/local-operator';
import { ServedApi } from './served-api';

/** Sends a request; checks that the answer is a problem with its own status, and returns its members. */
async function problemOf(api: ServedApi, path: string, init?: RequestInit): Promise<Record<string, unknown>> {
  const response = await api.send(path, init);
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  expect(response.headers.get('vary')).toMatch(/\bAccept\b/);
  const problem = Object(await response.json());
  expect(problem).toMatchObject({ status: response.status, title: expect.any(String), detail: expect.any(String) });
  return { ...problem, allow: response.headers.get('allow') };
}

it.each(['/api', '/api/', '/api/none', '/api/rules/shop/none', '/api/health.xml'])(
  'a path that the API does not have is a problem with status 404: %s',
  async (path) => {
    await using api = await ServedApi.start();
    expect(await problemOf(api, path)).toMatchObject({
      status: 404,
      title: 'Not Found',
      code: 'not_found',
      detail: `the API has no ${path}; /api/openapi.json describes it`,
    });
  },
);

it('a method that a path does not have is a problem with status 405 and Allow', async () => {
  await using api = await ServedApi.start();
  expect(await problemOf(api, '/api/health', { method: 'POST' })).toMatchObject({
    status: 405,
    code: 'method_not_allowed',
    detail: 'POST is not allowed here; allowed: HEAD, GET',
    allow: 'HEAD, GET',
  });
});

it('a version that does not exist is a problem with status 406 and the versions', async () => {
  await using api = await ServedApi.start();
  expect(await problemOf(api, '/api/health', { headers: { Accept: 'application/vnd.weir+json;version=2' } })).toEqual({
    status: 406,
    title: 'Not Acceptable',
    code: 'version_not_acceptable',
    detail: 'the Accept header names no version of this API',
    versions: [1],
    types: ['application/vnd.weir+json; version=1'],
    allow: null,
  });
});

it('an internal error is logged, and its message is not sent', async () => {
  const failing = jest.spyOn(LocalOperator.prototype, 'health').mockRejectedValueOnce(new Error('with details'));
  await using api = await ServedApi.start();
  const problem = await problemOf(api, '/api/health');
  failing.mockRestore();
  expect(problem).toMatchObject({ status: 500, code: 'internal_error' });
  expect(JSON.stringify(problem)).not.toContain('with details');
  expect(api.log.lines).toEqual(['error internal error in an HTTP request; answered with status 500']);
});

it('an answer names the vendor and the version of the API', async () => {
  await using api = await ServedApi.start();
  const response = await api.send('/api/health');
  expect(response.headers.get('content-type')).toBe('application/vnd.weir+json; version=1');
  expect(await response.json()).toEqual({ healthy: true, unhealthy: [] });
});

it('other paths of the listener are not of the API', async () => {
  await using api = await ServedApi.start();
  expect((await api.send('/apis')).headers.get('content-type')).toBe('application/json');
  expect((await api.send('/healthcheck')).status).toBe(200);
});
