import { type DebugServerOptions, serveDebug } from '../../src/http/debug/serve-debug';
import type { Statistic } from '../../src/http/debug/stats';
import type { ListeningHttpServer } from '../../src/http/server/http-server';
import { closeAll, recordingLog } from './http-client';
import { partsOf } from '../support/data/parts-of';

const opened: ListeningHttpServer[] = [];
afterEach(async () => {
  await closeAll();
  await Promise.all(opened.splice(0).map((server) => server.close()));
});

const AT = new Date('2026-02-03T04:05:06.000Z');

async function startDebugServer(options: Partial<DebugServerOptions> = {}) {
  const server = await serveDebug({
    host: '127.0.0.1',
    port: 0,
    version: '1.2.3',
    rules: () => partsOf(),
    rulesInfo: () => ({ loaded: undefined, rejected: undefined }),
    health: () => ({ healthy: true, unhealthy: [] }),
    checks: () => [],
    statistics: () => partsOf(),
    operatorsApi: (_ctx, next) => next(),
    onRejected: () => undefined,
    log: recordingLog(),
    ...options,
  });
  opened.push(server);
  return { port: server.address.port, url: `http://127.0.0.1:${server.address.port}` };
}

async function textOf(url: string, accept = '*/*'): Promise<string> {
  const response = await fetch(url, { headers: { Accept: accept } });
  expect(response.status).toBe(200);
  return response.text();
}

describe('the index of the debug server', () => {
  it('lists every page with its description', async () => {
    const { url } = await startDebugServer();
    expect(await textOf(url)).toBe(
      [
        'weir 1.2.3: debug',
        '',
        '/rlconfig      the active rules, one per line, and their origin',
        '/stats         the current value of every statistic, one per line',
        '/healthcheck   whether the service can be called, from its start on',
        '/readyz        the same for readiness probes; with ?verbose, one line for each check',
        '/livez         whether the process responds, for liveness probes',
        '/debug/pprof/  profiles of the running service',
        "/api/rules     the active rules as a tree: one path of the operators' API",
        '',
      ].join('\n'),
    );
  });

  it('has links for browsers, all of which work', async () => {
    const { url } = await startDebugServer();
    const html = await textOf(url, 'text/html,application/xhtml+xml,*/*;q=0.8');
    const links = [...html.matchAll(/href="([^"]+)"/g)].map(([, path]) => path!);
    expect(links).toEqual(['/rlconfig', '/stats', '/healthcheck', '/readyz', '/livez', '/debug/pprof/', '/api/rules']);
    for (const path of links.slice(0, 6)) await textOf(url + path);
  });

  it.each(['/debug/pprof/', '/debug/pprof'])('of profiles is served at %s', async (path) => {
    const { url } = await startDebugServer();
    const text = await textOf(url + path);
    expect(text).toMatch(/^\/debug\/pprof\/profile {12}a CPU profile .* for go tool pprof$/m);
    expect(text).toMatch(/^\/debug\/pprof\/heap\?format=v8 {5}a heap snapshot .* developer tools/m);
  });
});

describe('/healthcheck of the debug server', () => {
  it.each([
    [{ healthy: true, unhealthy: [] }, 200, 'OK'],
    [{ healthy: false, unhealthy: ['termination', 'x'] }, 500, 'unhealthy: termination, x'],
  ])('answers as that of the HTTP server: %j', async (health, status, text) => {
    const { url } = await startDebugServer({ health: () => health });
    const response = await fetch(`${url}/healthcheck`);
    expect([response.status, await response.text()]).toEqual([status, text]);
  });
});

describe('/rlconfig', () => {
  const rules = ['d.a: unit=SECOND requests_per_unit=1, shadow_mode: false, quota_mode: false', 'd.b_c: …'];

  it('shows the origin of the rules as comments, then the rules, sorted', async () => {
    const { url } = await startDebugServer({
      rules: () => partsOf(rules.toReversed()),
      rulesInfo: () => ({
        loaded: { source: 'files in /srv/config', version: '/srv/v2', at: AT },
        rejected: undefined,
      }),
    });
    const response = await fetch(`${url}/rlconfig`);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(await response.text()).toBe(
      ['# from files in /srv/config', '# version /srv/v2', '# loaded 2026-02-03T04:05:06.000Z', ...rules, ''].join(
        '\n',
      ),
    );
  });

  it('shows the reason of a rejected load, each line as a comment', async () => {
    const { url } = await startDebugServer({
      rules: () => partsOf(rules.toReversed()),
      rulesInfo: () => ({ loaded: undefined, rejected: { reason: 'a.yaml:1:2: bad\nb.yaml:3:4: worse', at: AT } }),
    });
    expect((await textOf(`${url}/rlconfig`)).split('\n').slice(0, 4)).toEqual([
      '# no configuration loaded yet',
      '# load rejected 2026-02-03T04:05:06.000Z, keeping the active rules:',
      '#   a.yaml:1:2: bad',
      '#   b.yaml:3:4: worse',
    ]);
  });

  it('shows the current rules on every request', async () => {
    let current = partsOf(['one']);
    const { url } = await startDebugServer({ rules: () => current });
    expect(await textOf(`${url}/rlconfig`)).toContain('\none\n');
    current = partsOf(['two']);
    expect(await textOf(`${url}/rlconfig`)).toContain('\ntwo\n');
  });
});

describe('/stats', () => {
  it('has one line per statistic, sorted by name', async () => {
    function statistics() {
      return partsOf<Statistic>(
        [
          ['b.total_hits', 3],
          ['B.x', 0.5],
        ],
        [
          ['a.within_limit', 3e21],
          ['a-b', 0],
        ],
      );
    }
    const { url } = await startDebugServer({ statistics });
    expect(await textOf(`${url}/stats`)).toBe(
      'B.x: 0.5\na-b: 0\na.within_limit: 3000000000000000000000\nb.total_hits: 3\n',
    );
  });
});

describe('a page that cannot be generated', () => {
  it('is answered with 500, and logged', async () => {
    const log = recordingLog();
    const { url } = await startDebugServer({
      log,
      statistics: () => {
        throw new Error('broken');
      },
    });
    const response = await fetch(`${url}/stats`);
    expect([response.status, await response.json()]).toEqual([
      500,
      { error: { code: 'internal_error', message: expect.any(String) } },
    ]);
    expect(log.lines).toEqual(['error internal error in an HTTP request; answered with status 500']);
  });
});

describe('an unknown path or method of the debug server', () => {
  it('is answered with 404 and the available paths', async () => {
    const { url } = await startDebugServer();
    const response = await fetch(`${url}/debug`);
    expect([response.status, await response.json()]).toEqual([
      404,
      {
        error: {
          code: 'not_found',
          message:
            'no such path; available: /, /rlconfig, /stats, /healthcheck, /readyz, /livez, /debug/pprof/, /api/rules',
        },
      },
    ]);
  });

  it.each([
    ['POST', '/stats', 'GET, HEAD'],
    ['DELETE', '/rlconfig', 'GET, HEAD'],
    ['HEAD', '/debug/pprof/profile', 'GET'],
    ['POST', '/debug/pprof/heap', 'GET'],
  ])('is answered with 405 and the allowed methods: %s %s, %s', async (method, path, allow) => {
    const { url } = await startDebugServer();
    const response = await fetch(url + path, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
  });

  it('does not include HEAD of a page', async () => {
    const { url } = await startDebugServer();
    const response = await fetch(`${url}/stats`, { method: 'HEAD' });
    expect([response.status, await response.text()]).toEqual([200, '']);
  });
});
