import type { Statistic } from '../../src/http/debug/pages';
import type { StatisticGroup } from '../../src/statistics/statistics';
import { type CurrentConfig, NO_CONFIG } from '../../src/streams/config';
import { HOSTILE, SHOWN } from '../support/data/hostile-text';
import { RecordedLog } from '../support/data/recorded-log';
import { limit, rulesetOf } from '../support/data/rules';
import { until } from '../support/waiting/until';
import { type TestHttpServer, closeAll, startDebugServer, unreadResponse, untilStill } from './http-client';

/** One listener for all tests; what its pages show is set by each test. */
let server: TestHttpServer;
let health: { healthy: boolean; unhealthy: string[] };
let config: CurrentConfig;
let statistics: () => Promise<Iterable<StatisticGroup>>;
/** How many requests have arrived. */
let arrived = 0;
const log = new RecordedLog();

beforeAll(async () => {
  server = await startDebugServer({
    log,
    readiness: {
      get health() {
        return health;
      },
      checks: [],
    },
    config: () => config,
    statistics: () => statistics(),
    operatorsApi: (_ctx, next) => {
      arrived += 1;
      return next();
    },
  });
});
beforeEach(() => {
  health = { healthy: true, unhealthy: [] };
  config = NO_CONFIG;
  statistics = async () => [];
  log.lines.splice(0);
});
afterAll(closeAll);

/** Each statistic as a group of its own. */
function alone(...each: readonly Statistic[]): readonly StatisticGroup[] {
  return each.map((statistic) => ({ name: statistic[0], entries: () => [statistic] }));
}

async function textOf(path: string, accept = '*/*'): Promise<string> {
  const response = await fetch(server.url + path, { headers: { Accept: accept } });
  expect([path, response.status]).toEqual([path, 200]);
  return response.text();
}

const PATHS = ['/console/', '/rlconfig', '/stats', '/healthcheck', '/readyz', '/livez', '/debug/pprof/', '/api/rules'];

describe('the index of the debug listener', () => {
  it('lists every page with its description', async () => {
    expect((await textOf('/')).split('\n')).toEqual([
      'weir 1.2.3: debug',
      '',
      '/console/      the console: live numbers, rules, explanations, counters',
      '/rlconfig      the active rules, one per line, and their origin',
      '/stats         the current value of every statistic, one per line; ?filter=<RE2>, ?format=json or prometheus',
      '/healthcheck   whether the service can be called, from its start on',
      '/readyz        the same for readiness probes; with ?verbose, one line for each check',
      '/livez         whether the process responds, for liveness probes',
      '/debug/pprof/  profiles of the running service',
      "/api/rules     the active rules as a tree: one path of the operators' API",
      '',
    ]);
  });

  it('has links for browsers, all of which work', async () => {
    const html = await textOf('/', 'text/html,application/xhtml+xml,*/*;q=0.8');
    // Relative, so that they are right below the path of a proxy.
    expect([...html.matchAll(/href="([^"]+)"/g)].map(([, path]) => `/${path}`)).toEqual(PATHS);
    for (const path of PATHS.slice(1, 7)) await textOf(path);
    for (const path of ['/rlconfig', '/stats', '/debug/pprof/']) {
      const links = [...(await textOf(path, 'text/html')).matchAll(/href="([^"]+)"/g)].map(([, link]) => link!);
      const paths = links.map((link) => new URL(link, server.url + path).pathname);
      expect(paths.slice(0, 2)).toEqual(['/', '/console/']);
      expect(links.filter((link) => link.startsWith('/'))).toEqual([]);
    }
  });

  it.each(['/debug/pprof/', '/debug/pprof'])('of profiles is served at %s', async (path) => {
    const text = await textOf(path);
    expect(text).toMatch(/^POST \/debug\/pprof\/profile {12}a CPU profile .* for go tool pprof$/m);
    expect(text).toMatch(/^\/debug\/pprof\/allocs {18}memory .* for go tool pprof$/m);
    expect(text).toMatch(/^POST \/debug\/pprof\/heap\?format=v8 {5}a heap snapshot .* developer tools/m);
  });
});

it('/healthcheck of the debug listener answers as that of the HTTP listener', async () => {
  expect(await textOf('/healthcheck')).toBe('OK');
  health = { healthy: false, unhealthy: ['termination', 'x'] };
  const response = await fetch(`${server.url}/healthcheck`);
  expect([response.status, await response.text()]).toEqual([500, 'unhealthy: termination, x']);
});

describe('/rlconfig', () => {
  const at = Date.parse('2026-02-03T04:05:06.000Z');
  const origin = { source: 'files in /srv/config', version: '/srv/v2' };

  function lineOf(key: string): string {
    return `d.${key}: unit=SECOND requests_per_unit=1, shadow_mode: false, quota_mode: false`;
  }

  it('shows the origin of the rules as comments, then the current rules, sorted', async () => {
    const head = ['# from files in /srv/config', '# version /srv/v2', '# loaded 2026-02-03T04:05:06.000Z'];
    // Listed in several parts.
    const many = Array.from({ length: 2_500 }, (_, index) => `k${(index * 7919) % 2_500}`);
    for (const keys of [['b', 'a', 'B'], many, ['c']]) {
      const rules = keys.map((key) => ({ key, rateLimit: limit(1, 'SECOND') }));
      config = { loaded: { ruleset: rulesetOf('d', ...rules), origin, at }, rejected: undefined };
      expect(await textOf('/rlconfig')).toBe([...head, ...keys.map(lineOf).toSorted(), ''].join('\n'));
    }
  });

  it('shows the reason of a rejected load, each line as a comment', async () => {
    config = { loaded: undefined, rejected: { reason: 'a.yaml:1:2: bad\nb.yaml:3:4: worse', at } };
    expect((await textOf('/rlconfig')).split('\n')).toEqual([
      '# no configuration loaded yet',
      '# load rejected 2026-02-03T04:05:06.000Z, none are active:',
      '#   a.yaml:1:2: bad',
      '#   b.yaml:3:4: worse',
      '',
    ]);
    config = { ...config, loaded: { ruleset: rulesetOf('d'), origin, at } };
    expect(await textOf('/rlconfig')).toContain('rejected 2026-02-03T04:05:06.000Z, keeping the active rules:\n');
  });
});

it('/rlconfig and /stats show every character of a text in its place', async () => {
  const ruleset = rulesetOf('d', { key: HOSTILE, rateLimit: limit(1, 'SECOND') });
  config = {
    loaded: { ruleset, origin: { source: 's', version: 'v' }, at: 0 },
    rejected: { reason: 'a\u202eb', at: 0 },
  };
  statistics = async () => alone([HOSTILE, 1]);
  const lines = (await textOf('/rlconfig')).split('\n').slice(4);
  expect(lines).toEqual([String.raw`#   a\u202eb`, expect.stringContaining(`d.${SHOWN}: `), '']);
  expect(await textOf('/stats')).toBe(`${SHOWN}: 1\n`);
});

describe('/stats', () => {
  it('has one line per statistic, sorted by name', async () => {
    const named: Statistic[] = [
      ['b.total_hits', 3],
      ['B.x', 0.5],
    ];
    statistics = async () => alone(...named, ['a.within_limit', 3e21], ['a-b', 0]);
    expect(await textOf('/stats')).toBe('B.x: 0.5\na-b: 0\na.within_limit: 3000000000000000000000\nb.total_hits: 3\n');
  });

  it('is sorted by the whole names, also where those of one group are between those of others', async () => {
    const stats = ['near_limit', 'total_hits'];
    const groups = ['a.b.q', 'a.b', 'a', 'a.b-x', 'a.b_c', 'a.b.z'].map((name) => ({
      name,
      entries: () => stats.map((stat): Statistic => [`${name}.${stat}`, 1]),
    }));
    statistics = async () => groups;
    const names = groups.flatMap(({ name }) => stats.map((stat) => `${name}.${stat}`));
    expect(await textOf('/stats')).toBe(
      names
        .toSorted()
        .map((name) => `${name}: 1\n`)
        .join(''),
    );
    const metrics = names.map((name) => name.replaceAll(/[.-]/g, '_'));
    expect(await textOf('/stats?format=prometheus')).toBe(
      metrics
        .toSorted()
        .map((metric) => `${metric} 1\n`)
        .join(''),
    );
  });

  it('makes no more than fits into buffers while the caller does not read', async () => {
    let made = 0;
    const name = 'x'.repeat(1_000);
    const groups = Array.from({ length: 30_000 }, (_, index) => ({
      name: name + index,
      entries: (): readonly Statistic[] => [[name + index, (made += 1)]],
    }));
    statistics = async () => groups;
    const { rest } = await unreadResponse(`${server.url}/stats`);
    await untilStill(() => made);
    expect(made).toBeLessThan(groups.length / 2);
    expect(await rest()).toBeGreaterThan(groups.length * name.length);
  });

  it('has those whose name an expression is found in, as text, JSON or metrics', async () => {
    const named: Statistic[] = [
      ['a.total_hits', 3],
      ['b-c.total_hits', 1],
      ['b.c.total_hits', 2],
      ['b.over_limit', 0.5],
    ];
    statistics = async () => alone(...named);
    expect(await textOf('/stats?filter=^b.*hits$')).toBe('b-c.total_hits: 1\nb.c.total_hits: 2\n');
    const stats = [{ name: 'b.over_limit', value: 0.5 }];
    expect(JSON.parse(await textOf('/stats?filter=over&format=json', 'text/html'))).toEqual({ stats });
    expect(await textOf('/stats?format=prometheus')).toBe('a_total_hits 3\nb_c_total_hits 1\nb_over_limit 0.5\n');
    expect(await textOf('/stats?filter=none&format=json')).toBe('{"stats":[]}\n');
    for (const [query, message] of [
      ['filter=(', /^invalid re2 regex: /],
      [`filter=${'x'.repeat(1_001)}`, /^filter has more than 1000 characters$/],
      ['format=xml', /^format must be one of text, json, prometheus$/],
    ] as const) {
      const response = await fetch(`${server.url}/stats?${query}`);
      const { error } = Object(await response.json());
      expect([response.status, error.message]).toEqual([400, expect.stringMatching(message)]);
    }
  });

  it('is HTML for browsers, in which names are text', async () => {
    statistics = async () => alone(['<b>&amp;', 1]);
    expect(await textOf('/stats', 'text/html')).toContain('<pre>&lt;b>&amp;amp;: 1\n</pre>');
  });

  it('is sorted in turns of the event loop', async () => {
    const names = Array.from({ length: 16_000 }, (_, index) => String((index * 7919) % 16_000).padStart(12, '0'));
    let turns = 0;
    let isRunning = true;
    statistics = async () => {
      (function count() {
        turns += 1;
        if (isRunning) setImmediate(count);
      })();
      return alone(...names.map((name): Statistic => [name, 1]));
    };
    const text = await textOf('/stats');
    isRunning = false;
    expect(text).toBe([...text.trimEnd().split('\n').toSorted(), ''].join('\n'));
    expect(text.split('\n')).toHaveLength(16_001);
    // After each run of 1,000 groups, and after each piece of the page, of 32 KiB.
    expect(turns).toBeGreaterThanOrEqual(16 + Math.floor(text.length / (32 * 1024)));
  });

  it('is generated once for all requests that arrive while another one is generated, and again after a failure', async () => {
    let begun = 0;
    const goOn: (() => void)[] = [];
    statistics = async () => {
      const number = (begun += 1);
      await new Promise<void>((resolve) => goOn.push(resolve));
      if (number === 3) throw new Error('broken');
      return alone([`page ${number}`, 0]);
    };
    function get() {
      return fetch(`${server.url}/stats`).then((response) => response.text());
    }
    async function finish(page: number) {
      await until(`page ${page} is begun`, () => goOn.length === page);
      goOn[page - 1]!();
    }
    const first = get();
    await until('the first is begun', () => goOn.length === 1);
    arrived = 0;
    const others = Array.from({ length: 20 }, get);
    await until('the others have arrived', () => arrived === 20);
    await finish(1);
    expect(await first).toBe('page 1: 0\n');
    await finish(2);
    expect(new Set(await Promise.all(others))).toEqual(new Set(['page 2: 0\n']));
    const failing = get();
    await finish(3);
    expect(await failing).toContain('internal_error');
    expect(log.short).toEqual(['error internal error in an HTTP request; answered with status 500']);
    const next = get();
    await finish(4);
    expect([await next, begun]).toEqual(['page 4: 0\n', 4]);
  });
});

describe('the console', () => {
  it('is redirected to by a relative location, so that it is below the path of a proxy', async () => {
    const { status, headers } = await fetch(`${server.url}/console`, { redirect: 'manual' });
    expect([status, headers.get('location')]).toEqual([302, 'console/']);
  });

  it('is not served when it is off', async () => {
    const without = await startDebugServer({ hasConsole: false });
    for (const path of ['/console', '/console/', '/console/main.js']) {
      expect([path, (await fetch(without.url + path)).status]).toEqual([path, 404]);
    }
    expect(await (await fetch(without.url)).text()).not.toContain('console');
  });
});

describe('an unknown path or method of the debug listener', () => {
  it('is answered with 404 and the available paths', async () => {
    const response = await fetch(`${server.url}/debug`);
    const message = `no such path; available: /, ${PATHS.join(', ')}`;
    expect([response.status, await response.json()]).toEqual([404, { error: { code: 'not_found', message } }]);
  });

  it.each([
    ['POST', '/stats', 'GET, HEAD'],
    ['HEAD', '/debug/pprof/heap', 'GET'],
  ])('is answered with 405 and the allowed methods: %s %s, %s', async (method, path, allow) => {
    const response = await fetch(server.url + path, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
  });
});
