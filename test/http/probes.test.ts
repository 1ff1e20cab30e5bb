import type { Check } from '../../src/streams/checks';
import { closeAll, startServer } from './http-client';

afterEach(closeAll);

const PASSING: readonly Check[] = [
  { name: 'configuration', failure: undefined },
  { name: 'store', failure: undefined },
];
const FAILING: readonly Check[] = [
  { name: 'configuration', failure: undefined },
  { name: 'store', failure: 'no connection' },
];
const FAILED_LIST = '[+]configuration ok\n[-]store failed: no connection\nreadyz check failed\n';

describe('/readyz', () => {
  it.each<[string, readonly Check[], string, number, string]>([
    ['200 and ok while every check passes', PASSING, '', 200, 'ok'],
    ['the checks with ?verbose', PASSING, '?verbose', 200, '[+]configuration ok\n[+]store ok\nreadyz check passed\n'],
    ['503 and the checks while one fails', FAILING, '', 503, FAILED_LIST],
    ['the same with ?verbose', FAILING, '?verbose=1', 503, FAILED_LIST],
  ])('answers %s', async (_, checks, query, status, text) => {
    const server = await startServer({ checks: () => checks });
    const response = await fetch(`${server.url}/readyz${query}`);
    expect([response.status, await response.text()]).toEqual([status, text]);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
  });

  it('reads the checks with each request', async () => {
    let current = PASSING;
    const server = await startServer({ checks: () => current });
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    current = FAILING;
    expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
  });
});

describe('/livez', () => {
  it('answers 200 whatever the health and the checks are', async () => {
    const server = await startServer({
      checks: () => FAILING,
      health: () => ({ healthy: false, unhealthy: ['termination'] }),
    });
    const response = await fetch(`${server.url}/livez`);
    expect([response.status, await response.text()]).toEqual([200, 'ok']);
  });
});

describe('both', () => {
  it.each(['/livez', '/readyz'])('answer HEAD without a body, and other methods with 405: %s', async (path) => {
    const server = await startServer({ checks: () => PASSING });
    const head = await fetch(server.url + path, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const post = await fetch(server.url + path, { method: 'POST' });
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });
});
