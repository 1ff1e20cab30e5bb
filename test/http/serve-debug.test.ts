import { request as httpRequest } from 'node:http';
import { type DebugOptions, serveDebug } from '../../src/http/debug/serve-debug';
import type { Listening } from '../../src/http/server/serve';
import { recordingLog, wire, closeAll } from './http-client';

const opened: Listening[] = [];
afterEach(async () => {
  await closeAll();
  await Promise.all(opened.splice(0).map((listening) => listening.close()));
});

const AT = new Date('2026-02-03T04:05:06.000Z');

async function openDebug(options: Partial<DebugOptions> = {}) {
  const listening = await serveDebug({
    host: '127.0.0.1',
    port: 0,
    rules: () => [],
    about: () => ({ loaded: undefined, rejected: undefined }),
    statistics: () => [],
    log: recordingLog(),
    ...options,
  });
  opened.push(listening);
  return { port: listening.address.port, url: `http://127.0.0.1:${listening.address.port}` };
}

async function textOf(url: string, accept = '*/*'): Promise<string> {
  const response = await fetch(url, { headers: { Accept: accept } });
  expect(response.status).toBe(200);
  return response.text();
}

describe('the index of the debug listener', () => {
  it('lists every page with a line about it', async () => {
    const { url } = await openDebug();
    expect(await textOf(url)).toBe(
      [
        'weir: debug',
        '',
        '/rlconfig      the rules in force, one a line, and where they come from',
        '/stats         all statistics at this moment, one a line',
        '/debug/pprof/  profiles of the running service',
        '',
      ].join('\n'),
    );
  });

  it('has links for a browser, and each of them answers', async () => {
    const { url } = await openDebug();
    const html = await textOf(url, 'text/html,application/xhtml+xml,*/*;q=0.8');
    const links = [...html.matchAll(/href="([^"]+)"/g)].map(([, path]) => path!);
    expect(links).toEqual(['/rlconfig', '/stats', '/debug/pprof/']);
    for (const path of links) await textOf(url + path);
  });

  it.each(['/debug/pprof/', '/debug/pprof'])('of the profiles is at %s', async (path) => {
    const { url } = await openDebug();
    const text = await textOf(url + path);
    expect(text).toMatch(/^\/debug\/pprof\/profile {2}a CPU profile/m);
    expect(text).toMatch(/^\/debug\/pprof\/heap {5}a heap snapshot/m);
  });
});

describe('/rlconfig', () => {
  const rules = ['d.a: unit=SECOND requests_per_unit=1, shadow_mode: false, quota_mode: false', 'd.b_c: …'];

  it('shows the rule lines as they are, under a head that says where they come from', async () => {
    const { url } = await openDebug({
      rules: () => rules,
      about: () => ({
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

  it('says what the last failed load was about, each line as a comment', async () => {
    const { url } = await openDebug({
      rules: () => rules,
      about: () => ({ loaded: undefined, rejected: { reason: 'a.yaml:1:2: bad\nb.yaml:3:4: worse', at: AT } }),
    });
    expect((await textOf(`${url}/rlconfig`)).split('\n').slice(0, 4)).toEqual([
      '# no configuration loaded yet',
      '# a load failed 2026-02-03T04:05:06.000Z, and changed nothing:',
      '#   a.yaml:1:2: bad',
      '#   b.yaml:3:4: worse',
    ]);
  });

  it('shows the present at every request', async () => {
    let lines = ['one'];
    const { url } = await openDebug({ rules: () => lines });
    expect(await textOf(`${url}/rlconfig`)).toContain('\none\n');
    lines = ['two'];
    expect(await textOf(`${url}/rlconfig`)).toContain('\ntwo\n');
  });
});

describe('/stats', () => {
  it('has a line a statistic, sorted by name', async () => {
    function statistics() {
      return new Map([
        ['b.total_hits', 3],
        ['B.x', 0.5],
        ['a.within_limit', 9007199254740991],
        ['a-b', 0],
      ]);
    }
    const { url } = await openDebug({ statistics });
    expect(await textOf(`${url}/stats`)).toBe('B.x: 0.5\na-b: 0\na.within_limit: 9007199254740991\nb.total_hits: 3\n');
  });
});

describe('/debug/pprof/profile', () => {
  it('is a CPU profile that browser dev tools open', async () => {
    const { url } = await openDebug();
    const response = await fetch(`${url}/debug/pprof/profile?seconds=0.1`);
    expect(response.headers.get('content-disposition')).toMatch(/^attachment; filename="weir-[\dTZ.-]+\.cpuprofile"$/);
    expect(JSON.parse(await response.text())).toMatchObject({
      nodes: expect.any(Array),
      startTime: expect.any(Number),
      endTime: expect.any(Number),
      samples: expect.any(Array),
      timeDeltas: expect.any(Array),
    });
  });

  it.each(['0', '0.05', '301', '-1', 'x', '', '1e1', '1&seconds=2'])('refuses seconds=%s', async (seconds) => {
    const { url } = await openDebug();
    const response = await fetch(`${url}/debug/pprof/profile?seconds=${seconds}`);
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: { code: 'invalid_request', message: 'seconds must be a number from 0.1 to 300' } },
    ]);
  });

  it('is taken one at a time, and a caller that goes away makes room for the next', async () => {
    const { url, port } = await openDebug();
    const first = wire(port);
    first.send('GET /debug/pprof/profile HTTP/1.1\r\nHost: x\r\n\r\n');
    async function status() {
      const response = await fetch(`${url}/debug/pprof/profile?seconds=0.1`);
      await response.arrayBuffer();
      return response.status;
    }
    while ((await status()) !== 409);
    first.socket.destroy();
    while ((await status()) === 409);
    expect(await status()).toBe(200);
  });

  it('does not hold up the end of the service', async () => {
    const listening = await serveDebug({
      host: '127.0.0.1',
      port: 0,
      rules: () => [],
      about: () => ({ loaded: undefined, rejected: undefined }),
      statistics: () => [],
      log: recordingLog(),
    });
    const caller = wire(listening.address.port);
    caller.send('GET /debug/pprof/profile?seconds=300 HTTP/1.1\r\nHost: x\r\n\r\n');
    await fetch(`http://127.0.0.1:${listening.address.port}/stats`);
    await listening.close();
    expect(await caller.ended).toBe('');
  });
});

describe('/debug/pprof/heap', () => {
  it('is a heap snapshot that browser dev tools open', async () => {
    const { port } = await openDebug();
    // The snapshot of a test process is large: its beginning says what it is.
    const beginning = await new Promise<string>((resolve, reject) => {
      const request = httpRequest({ port, path: '/debug/pprof/heap' }, (response) => {
        expect(response.headers['content-disposition']).toMatch(/^attachment; filename="weir-.*\.heapsnapshot"$/);
        response.once('data', (chunk: Buffer) => {
          resolve(chunk.toString());
          request.destroy();
        });
      });
      request.once('error', reject).end();
    });
    expect(beginning).toMatch(/^\{"snapshot":\{"meta":\{"node_fields":/);
  });
});

describe('what the debug listener does not have', () => {
  it('is 404, and says what there is', async () => {
    const { url } = await openDebug();
    const response = await fetch(`${url}/debug`);
    expect([response.status, await response.json()]).toEqual([
      404,
      { error: { code: 'not_found', message: 'there is nothing here; there is /, /rlconfig, /stats, /debug/pprof/' } },
    ]);
  });

  it.each([
    ['POST', '/stats', 'GET, HEAD'],
    ['DELETE', '/rlconfig', 'GET, HEAD'],
    ['HEAD', '/debug/pprof/profile', 'GET'],
    ['POST', '/debug/pprof/heap', 'GET'],
  ])('%s %s is 405, allowing %s', async (method, path, allow) => {
    const { url } = await openDebug();
    const response = await fetch(url + path, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
  });

  it('leaves HEAD to the pages', async () => {
    const { url } = await openDebug();
    const response = await fetch(`${url}/stats`, { method: 'HEAD' });
    expect([response.status, await response.text()]).toEqual([200, '']);
  });
});
