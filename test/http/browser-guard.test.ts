import { hostname } from 'node:os';
import { Authorization } from '../../src/http/operators/authorization';
import { RecordedLog } from '../support/data/recorded-log';
import { type TestHttpServer, closeAll, jsonIn, rawConnection, startDebugServer } from './http-client';

const TOKEN = 'a-token-of-the-operators';
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
const CPU_PROFILE = '/debug/pprof/profile?seconds=0.1';

let server: TestHttpServer;
let token: string | undefined;

beforeAll(async () => {
  server = await startDebugServer({
    allowedHosts: ['weir.example.com', '*.ops.example.com'],
    authorization: new Authorization(() => token, new RecordedLog()),
  });
});
beforeEach(() => (token = undefined));
afterAll(closeAll);

type Headers = Readonly<Record<string, string>>;

/** The whole response to a request with exactly these headers. */
function send(path: string, headers: Headers, { method = 'GET', body = '' } = {}): Promise<string> {
  const all = { ...headers, 'Content-Length': body.length, Connection: 'close' };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return rawConnection(server.port, `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`).ended;
}

async function statusOf(...request: Parameters<typeof send>): Promise<number> {
  return Number((await send(...request)).slice(9, 12));
}

/** What the body of a rejection says. */
async function errorOf(...request: Parameters<typeof send>): Promise<unknown> {
  return Object(jsonIn(await send(...request))).error;
}

describe('the debug listener', () => {
  it.each([
    ...['10.0.0.5:6070', '127.0.0.1', '[::1]:6070', '[fe80::1]', 'localhost:6070', 'LOCALHOST.', 'weir.localhost:1'],
    ...['weir', 'weir-debug:6070', hostname().toUpperCase(), 'weir.example.com:6070', 'a.b.ops.example.com'],
  ])('may be called by the host %s', async (host) => {
    expect(await statusOf('/rlconfig', { Host: host })).toBe(200);
  });

  it.each([
    'evil.example',
    'weir.example.com.evil.example:6070',
    'xweir.example.com',
    'ops.example.com',
    '1.2.3.4.nip.io',
  ])('may not be called by the host %s, except by probes', async (host) => {
    for (const path of ['/', '/rlconfig', '/stats', '/debug/pprof/heap', '/api/rules', '/nowhere']) {
      expect([path, await statusOf(path, { Host: host })]).toEqual([path, 421]);
    }
    for (const path of ['/healthcheck', '/livez', '/readyz?verbose']) {
      expect([path, await statusOf(path, { Host: host })]).toEqual([path, 200]);
    }
  });

  it('says how it can be called by another host', async () => {
    expect(await errorOf('/stats', { Host: 'weir.example.org:6070' })).toEqual({
      code: 'unknown_host',
      message:
        'the debug listener is not known by the name weir.example.org: call it by its address, ' +
        'or add the name to DEBUG_ALLOWED_HOSTS and start the service again',
    });
  });

  const PAGE = { 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Dest': 'empty' };
  const LINK = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' };
  const FRAME = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'iframe' };
  const IMAGE = { 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'image' };

  it.each<[string, number, Headers, string?]>([
    ['a program', 200, {}],
    ['an address that is typed', 200, { 'Sec-Fetch-Site': 'none', ...LINK }],
    ['its own page', 200, { 'Sec-Fetch-Site': 'same-origin', ...PAGE }],
    ['its own page, with an origin', 200, { Origin: 'http://h:6070' }],
    ['its own page behind TLS', 200, { 'Sec-Fetch-Site': 'same-origin', Origin: 'https://H:6070', ...PAGE }],
    ['a link of another site', 200, { 'Sec-Fetch-Site': 'cross-site', ...LINK }],
    ['a link of another port', 200, { 'Sec-Fetch-Site': 'same-site', ...LINK }],
    ['a form of another site', 403, { 'Sec-Fetch-Site': 'cross-site', ...LINK }, 'POST'],
    ['a frame of another site', 403, { 'Sec-Fetch-Site': 'cross-site', ...FRAME }],
    ['an image of another site', 403, { 'Sec-Fetch-Site': 'cross-site', ...IMAGE }],
    ['a script of another port', 403, { 'Sec-Fetch-Site': 'same-site', ...PAGE }],
    ['another site', 403, { Origin: 'http://evil.example' }],
    ['another port', 403, { Origin: 'http://h:8080' }],
    ['a page without an origin', 403, { Origin: 'null' }],
  ])('answers a request of %s with %d', async (_, status, headers, method = 'GET') => {
    const path = method === 'POST' ? CPU_PROFILE : '/rlconfig';
    expect(await statusOf(path, { Host: 'h:6070', ...headers }, { method })).toBe(status);
    if (status !== 403) return;
    expect(await errorOf(path, { Host: 'h', ...headers }, { method })).toMatchObject({ code: 'cross_site' });
  });

  it('forbids browsers to show it in a frame, or to read it as something else', async () => {
    for (const path of ['/', '/stats', '/nowhere']) {
      const response = await fetch(server.url + path);
      expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(response.headers.get('cross-origin-resource-policy')).toBe('same-origin');
    }
  });
});

describe('profiles', () => {
  const HOST = { Host: 'localhost' };

  it.each([
    ['GET', CPU_PROFILE, 'POST'],
    ['HEAD', CPU_PROFILE, 'POST'],
    ['GET', '/debug/pprof/heap?format=v8', 'POST'],
    ['POST', '/debug/pprof/heap?seconds=0.1', 'GET'],
    ['POST', '/debug/pprof/allocs?seconds=0.1', 'GET'],
  ])('are not begun by a link: %s %s is answered with 405, allowed: %s', async (method, path, allow) => {
    const response = await fetch(server.url + path, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
  });

  it('need the operator token when there is one, in a header or a form', async () => {
    function post(headers: Headers, body = '') {
      return statusOf(CPU_PROFILE, { ...HOST, ...headers }, { method: 'POST', body });
    }
    expect(await post({})).toBe(200);
    token = TOKEN;
    expect(await post({})).toBe(401);
    expect(await post(FORM, 'token=another-token-of-operators')).toBe(401);
    expect(await post(FORM, 'token=')).toBe(401);
    expect(await post({ 'Content-Type': 'text/plain' }, `token=${TOKEN}`)).toBe(401);
    expect(await post(FORM, `token=${TOKEN}&seconds=&worker=`)).toBe(200);
    expect(await post({ Authorization: `Bearer ${TOKEN}` })).toBe(200);
    for (const name of ['heap', 'allocs']) {
      const path = `/debug/pprof/${name}?seconds=0.1`;
      expect([name, await statusOf(path, HOST)]).toEqual([name, 401]);
      expect([name, await statusOf(path, { ...HOST, Authorization: `Bearer ${TOKEN}` })]).toEqual([name, 200]);
      token = undefined;
      // As `go tool pprof` requests it.
      expect([name, await statusOf(path, HOST)]).toEqual([name, 200]);
      token = TOKEN;
    }
  });

  it('have forms on the index page, whose fields are parameters', async () => {
    const html = await (await fetch(`${server.url}/debug/pprof/`, { headers: { Accept: 'text/html' } })).text();
    expect(
      [...html.matchAll(/<form method="post" action="([^"]+)"><button>POST .*<\/form>/g)].map(([, path]) => path),
    ).toEqual(['../../debug/pprof/profile', '../../debug/pprof/profile?format=v8', '../../debug/pprof/heap?format=v8']);
    expect([...html.matchAll(/<input name="(\w+)" type="(\w+)"/g)].map(([, ...field]) => field.join())).toEqual([
      ...['seconds,text', 'token,password', 'seconds,text', 'token,password', 'token,password'],
    ]);
    const wrong = await errorOf('/debug/pprof/profile', { ...HOST, ...FORM }, { method: 'POST', body: 'seconds=999' });
    expect(wrong).toMatchObject({ message: 'seconds must be a number from 0.1 to 300' });
  });
});
