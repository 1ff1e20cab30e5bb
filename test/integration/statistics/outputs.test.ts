import { status } from '@grpc/grpc-js';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { REJECTIONS } from '../../../src/grpc/http2/limits';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import { HTTP_REJECTIONS } from '../../../src/http/limits';
import { GIVEN_BACK, SERVICE_ERRORS, STORE_ERRORS } from '../../../src/statistics/statistics';
import { callByHand } from '../../support/clients/call-by-hand';
import { requestMessage } from '../../support/clients/grpc-client';
import { freePorts } from '../../support/processes/free-ports';
import { isListening } from '../../support/processes/is-listening';
import { WeirProcess } from '../../support/processes/weir-process';
import { TcpReceiver, UdpReceiver } from '../../support/servers/statsd-receivers';
import { Shop } from '../../e2e/shop';
import { DOCUMENTED, documentedKinds } from './documented-statistics';

const RULES = `
domain: shop
descriptors:
  - { key: plain, rate_limit: { unit: day, requests_per_unit: 10 } }
  - { key: shadow, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - key: user
    detailed_metric: true
    rate_limit: { unit: day, requests_per_unit: 100 }
    descriptors: [{ key: path, detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 100 } }]
`;
const host = '127.0.0.1';

function startShop(env: Readonly<Record<string, string>>) {
  return Shop.start({ env }, RULES);
}

/**
 * Starts a TCP receiver for plain statistics and a UDP receiver for tagged ones on the same port, that of
 * PUSHSTATS_PORT.
 */
async function startStatsdDaemons(): Promise<{ readonly tcp: TcpReceiver; readonly udp: UdpReceiver }> {
  for (;;) {
    const tcp = await TcpReceiver.start();
    try {
      return { tcp, udp: await UdpReceiver.start({ port: tcp.port }) };
    } catch {
      await tcp[Symbol.asyncDispose]();
    }
  }
}

describe('a statistic on every output', () => {
  let daemons: Awaited<ReturnType<typeof startStatsdDaemons>>;
  let page: string;
  let known: ReadonlyMap<string, number>;

  /** Calls that change statistics, one or more with each line. */
  async function work({ client, weir }: Shop): Promise<void> {
    await client.shouldRateLimit('shop', ['plain'], 10);
    await client.shouldRateLimit('shop', ['plain']);
    await client.shouldRateLimit('shop', ['plain']);
    const call = ['user=a,path=x'];
    await Promise.all([client.shouldRateLimit('shop', call), client.shouldRateLimit('shop', call)]);
    await client.shouldRateLimit('shop', ['shadow'], 2);
    await client.shouldRateLimit('shop', ['user=back']);
    const subtracted = { entries: [{ key: 'user', value: 'back' }], limit: undefined, hitsAddend: 3n };
    await client.shouldRateLimit('shop', [{ ...subtracted, isNegativeHits: true }]);
    await client.shouldRateLimit('nowhere', ['plain', 'plain']);
    await expect(client.shouldRateLimit('', ['plain'])).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });
    const health = callByHand(weir.grpcAddress, '/grpc.health.v1.Health/Check', new Uint8Array());
    expect(await health).toBe(status.OK);
    const late = requestMessage('shop', ['user=late']);
    const timeout = { 'grpc-timeout': '200m' };
    expect(await callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, late, timeout)).toBe(status.DEADLINE_EXCEEDED);
  }

  beforeAll(async () => {
    daemons = await startStatsdDaemons();
    const [metricsPort] = await freePorts(1);
    await using shop = await startShop({
      USE_STATSD: 'true',
      USE_DOG_STATSD: 'true',
      USE_PROMETHEUS: 'true',
      STATSD_HOST: host,
      STATSD_PORT: String(daemons.tcp.port),
      PROMETHEUS_ADDR: `${host}:${metricsPort}`,
      // All lines are those of the last flush, at the end of the service.
      STATS_FLUSH_INTERVAL: '1h',
      EXTRA_TAGS: 'stage:prod,az:eu.1',
      USE_DOG_STATSD_MOGRIFIERS: 'rules',
      DOG_STATSD_MOGRIFIER_RULES_PATTERN: String.raw`^ratelimit\.service\.rate_limit\.(?P<domain>[^.]+)\.(.+)\.([^.]+)$`,
      DOG_STATSD_MOGRIFIER_RULES_NAME: 'ratelimit.service.rate_limit.$3',
      DOG_STATSD_MOGRIFIER_RULES_TAGS: 'domain:$1,descriptor:$2',
      LOCAL_CACHE_SIZE_IN_BYTES: '1000000',
      KVSTORE_PIPELINE_WINDOW: '400ms',
    });
    await work(shop);
    await shop.rules.write('bad.yaml', 'domain: [');
    await shop.weir.line(/new rules rejected/);
    page = await (await fetch(`http://${host}:${metricsPort}/metrics`)).text();
    known = await shop.weir.statistics();
    await shop.drain();
    const { tcp, udp } = daemons;
    for (const lines of [tcp, udp]) await lines.until('the last lines', () => durations(lines.lines).length === 11);
  });
  afterAll(async () => {
    await daemons.tcp[Symbol.asyncDispose]();
    await daemons.udp[Symbol.asyncDispose]();
  });

  const TIMES = 'ratelimit_server.ShouldRateLimit.response_time';
  function durations(lines: readonly string[]) {
    return lines.filter((line) => line.startsWith(TIMES));
  }
  /** The number that follows `start` in a line with this start and end. */
  function numberIn(lines: readonly string[], start: string, end: string) {
    const line = lines.find((each) => each.startsWith(start) && each.endsWith(end));
    return Number.parseFloat(line?.slice(start.length) ?? '');
  }
  function pulled(metric: string, labels: readonly string[] = []) {
    return numberIn(page.split('\n'), `${metric}{${['az="eu.1"', ...labels, 'stage="prod"'].join(',')}} `, '');
  }
  /** The values on the TCP and UDP outputs. */
  function pushed(name: string, type: string, ofTagged = name, tags = '') {
    return [
      numberIn(daemons.tcp.lines, `${name}.__az=eu_1.__stage=prod:`, `|${type}`),
      numberIn(daemons.udp.lines, `${ofTagged}:`, `|${type}|#az:eu_1,${tags}stage:prod`),
    ];
  }

  it.each([
    ['plain', 'total_hits', 12],
    ['plain', 'near_limit', 2],
    ['plain', 'over_limit', 2],
    ['plain', 'over_limit_with_local_cache', 1],
    ['shadow', 'shadow_mode', 1],
    ['user_a.path_x', 'within_limit', 2],
    ['user_back', 'total_negative_hits', 3],
  ])('of a rule: %s.%s is %i', (key, stat, value) => {
    const name = 'ratelimit.service.rate_limit';
    const metric = name.replaceAll('.', '_');
    const labels = ['domain="shop"', ...key.split('.').map((text, index) => `key${index + 1}="${text}"`)];
    const isMapped = !/local_cache|negative/.test(stat);
    expect([
      ...pushed(`${name}.shop.${key}.${stat}`, 'c', `${name}.${stat}`, `descriptor:${key},domain:shop,`),
      isMapped ? pulled(`${metric}_${stat}`, labels) : pulled(`${metric}_shop_${key}_${stat}`),
    ]).toEqual([value, value, value]);
  });

  const ERRORS = 'ratelimit_service_should_rate_limit_error';
  const REQUESTS = 'ratelimit_service_total_requests';
  it.each([
    ['ratelimit.service.call.should_rate_limit.service_error', 'c', 1, ERRORS, 'err_type="service_error"'],
    ['ratelimit.service.call.should_rate_limit.redis_error', 'c', 1, ERRORS, 'err_type="redis_error"'],
    ['ratelimit_server.ShouldRateLimit.total_requests', 'c', 11, REQUESTS, 'grpc_method="ShouldRateLimit"'],
    ['ratelimit_server.Check.total_requests', 'c', 1, REQUESTS, 'grpc_method="Check"'],
    ['ratelimit.service.config_load_error', 'c', 1],
    ['ratelimit.service.rate_limit.nowhere.domain_not_found', 'c', 2],
    ['ratelimit.pipeline.merged_hits', 'c', 1],
    ['runtime.load_attempts', 'c', 2],
    ['runtime.num_values', 'g', 1],
    ['ratelimit.localcache.hitCount', 'g', 1],
    ['ratelimit.localcache.lookupCount', 'g', 8],
    ['ratelimit.localcache.evacuateCount', 'g', 0],
    ['ratelimit.statistics.runtime_keys', 'g', 4],
  ])('of the service: %s (%s) is %i', (name, type, value, metric = name.replaceAll('.', '_'), labels?: string) => {
    expect([...pushed(name, type), pulled(metric, labels?.split(','))]).toEqual([value, value, value]);
  });

  it('is a duration per call, failed ones included: in whole milliseconds when pushed, in seconds when scraped', () => {
    expect(daemons.udp.lines.filter((line) => !/^[^:|]+:[^:|]+\|(?:c|g|ms)\|#[^|]+$/.test(line))).toEqual([]);
    for (const line of durations(daemons.tcp.lines)) expect(line).toMatch(/^\S+\.__az=eu_1\.__stage=prod:\d+\|ms$/);
    for (const line of durations(daemons.udp.lines)) expect(line).toMatch(/^\S+:\d+\|ms\|#az:eu_1,stage:prod$/);
    const sum = durations(daemons.tcp.lines).reduce((all, line) => all + Number(/:(\d+)\|/.exec(line)?.[1]), 0);
    // Most of them waited for a pipeline window of 400 ms.
    expect(sum).toBeGreaterThan(2_000);
    const method = ['grpc_method="ShouldRateLimit"'];
    expect(pulled('ratelimit_service_response_time_seconds_count', method)).toBe(11);
    const fractions = pulled('ratelimit_service_response_time_seconds_sum', method) * 1000 - sum;
    expect(fractions).toBeGreaterThanOrEqual(0);
    expect(fractions).toBeLessThan(11);
    expect(known.get(`${TIMES}.count`)).toBe(11);
    expect(known.get(`${TIMES}.p99_ms`)).toBeGreaterThan(50);
  });
});

describe('the metrics page of a service whose statsd daemon does not read', () => {
  let daemon: TcpReceiver;
  let shop: Shop;
  let port: number;
  let url: string;
  beforeAll(async () => {
    daemon = await TcpReceiver.start({ reads: false });
    [port] = await freePorts(1);
    url = `http://127.0.0.2:${port}`;
    shop = await startShop({
      USE_PUSHSTATS: 'true',
      PUSHSTATS_HOST: host,
      PUSHSTATS_PORT: String(daemon.port),
      STATS_FLUSH_INTERVAL: '10ms',
      USE_PULLMETRICS: 'true',
      PULLMETRICS_ADDR: `127.0.0.2:${port}`,
      PULLMETRICS_PATH: '/internal/numbers',
      PULLMETRICS_RESPONSE_TIME_AS_MILLISECONDS: 'true',
      KVSTORE_PIPELINE_WINDOW: '50ms',
    });
  });
  afterAll(async () => {
    await shop[Symbol.asyncDispose]();
    await daemon[Symbol.asyncDispose]();
  });

  it('is in the Prometheus text format at its path and address only, for GET and HEAD, compressed on request', async () => {
    async function statusOf([path, method = 'GET']: readonly string[]) {
      return (await fetch(`${url}${path}`, { method })).status;
    }
    const page = '/internal/numbers';
    const requests = [[page], [page, 'HEAD'], [page, 'POST'], ['/'], ['/metrics'], [`${page}/`]];
    expect(await Promise.all(requests.map(statusOf))).toEqual([200, 200, 405, 404, 404, 404]);
    expect(await isListening(port)).toBe(false);
    for (const encoding of ['gzip', null]) {
      const response = await fetch(`${url}${page}`, { headers: { 'Accept-Encoding': encoding ?? 'identity' } });
      expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
      expect(response.headers.get('content-encoding')).toBe(encoding);
      expect(await response.text()).toMatch(/^# HELP [^]*# TYPE process_cpu_seconds_total counter\n[^]*\n$/);
    }
  });

  it('has response times in milliseconds if this is set; neither calls nor the shutdown wait for the daemon', async () => {
    await Promise.all(Array.from({ length: 50 }, () => shop.client.shouldRateLimit('shop', ['plain'])));
    const page = await shop.weir.until('the response times', async () => {
      const text = await (await fetch(`${url}/internal/numbers`)).text();
      return text.includes('ratelimit_service_response_time_seconds_count{grpc_method="ShouldRateLimit"} 50') && text;
    });
    const sum = /^ratelimit_service_response_time_seconds_sum\{grpc_method="ShouldRateLimit"\} (.*)$/m.exec(page)?.[1];
    expect(Number(sum)).toBeGreaterThan(50 * 10);
    expect(page).toContain('ratelimit_service_response_time_seconds Time from a call to its answer, in milliseconds.');
    await shop.drain();
  });
});

describe('statistics', () => {
  it('are one JSON object per line on standard output when no other output is enabled', async () => {
    await using shop = await startShop({ USE_PUSHSTATS: 'false', STATS_FLUSH_INTERVAL: '100ms', SHADOW_MODE: 'true' });
    const { weir, client } = shop;
    await client.shouldRateLimit('shop', ['plain'], 11);
    const json = { name: 'ratelimit.service.global_shadow_mode', type: 'counter', value: '1.000000' };
    expect(JSON.parse(await weir.line(/global_shadow_mode/))).toMatchObject({ msg: 'flushing counter', json });
    await weir.line(/"name":"ratelimit_server.ShouldRateLimit.response_time","type":"timer"/);
    await weir.line(/"name":"ratelimit.statistics.runtime_keys","type":"gauge"/);
  });

  it('are on no output with DISABLE_STATS', async () => {
    await using receiver = await TcpReceiver.start();
    const [port] = await freePorts(1);
    await using shop = await startShop({
      USE_PUSHSTATS: 'true',
      PUSHSTATS_HOST: host,
      PUSHSTATS_PORT: String(receiver.port),
      STATS_FLUSH_INTERVAL: '10ms',
      USE_PULLMETRICS: 'true',
      PULLMETRICS_ADDR: `${host}:${port}`,
      DISABLE_STATS: 'true',
    });
    await shop.client.shouldRateLimit('shop', ['plain']);
    expect(await isListening(port)).toBe(false);
    await shop.drain();
    expect(receiver.connections).toBe(0);
  });
});

describe('the service does not start, and names the setting, with', () => {
  const regex = {
    USE_DOG_STATSD_MOGRIFIERS: 'a',
    DOG_STATSD_MOGRIFIER_A_NAME: 'x',
    DOG_STATSD_MOGRIFIER_A_PATTERN: '(?=x)',
  };
  const withoutPackage = { NODE_OPTIONS: `--require=${require.resolve('./without-native-package.cjs')}` };
  function mapping(file: string) {
    return { USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: '127.0.0.1:0', PROMETHEUS_MAPPER_YAML: file };
  }

  it.each<[title: string, env: Readonly<Record<string, string>>, messages: readonly string[]]>([
    ['an invalid mogrifier', regex, ['is not a valid regular expression: invalid or unsupported Perl syntax: (?=']],
    ['an invalid mapping file', mapping(__filename), [`=${__filename} cannot be used: `]],
    [
      'a mapping file that is too large',
      mapping(process.execPath),
      [' cannot be used: it has more than 4194304 bytes'],
    ],
    ['a device as the mapping file', mapping('/dev/zero'), ['=/dev/zero cannot be used: it is not a regular file']],
    [
      'a datagram socket, but without the native package for it',
      { ...withoutPackage, STATSD_HOST: 'unix:///run/dsd.socket' },
      [
        '=unix:///run/dsd.socket cannot be used: the package node-unix-socket',
        'install it with npm install --include=optional',
        'let the daemon listen on a stream socket, unixstream:///path',
      ],
    ],
  ])('%s', async (_, env, messages) => {
    await using weir = await WeirProcess.start({ env: { USE_DOG_STATSD: 'true', ...env }, awaitServing: false });
    expect(await weir.exited).toBe(1);
    for (const message of [...Object.keys(env).slice(-1), ...messages]) expect(weir.output).toContain(message);
    expect(weir.output).not.toMatch(/serving|Require stack|Cannot find module.*Cannot find module/s);
  });
});

describe('docs/statistics.md', () => {
  it('lists every statistic that the source code creates', () => {
    const made = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.startsWith('gen/'))
      .flatMap((file) => namesIn(readFileSync(join(SOURCES, file), 'utf8')));
    expect(made.length).toBeGreaterThan(25);
    expect(made.filter((name) => !DOCUMENTED.some(({ written }) => covers(written, name)))).toEqual([]);
  });

  it.each([
    ['rejection', 'gRPC', 'ratelimit_server.http2.<rejection>', REJECTIONS],
    ['refusal', 'HTTP', 'ratelimit_server.http.<refusal>', HTTP_REJECTIONS],
  ] as const)('lists every kind of %s of the %s listeners', (placeholder, _, statistic, kinds) => {
    expect(documentedKinds(placeholder)).toEqual([...kinds]);
    expect(DOCUMENTED.map(({ written }) => written)).toContain(statistic);
  });
});

const SOURCES = join(__dirname, '../../../src');
const CONSTANTS: Readonly<Record<string, string>> = { GIVEN_BACK, SERVICE_ERRORS, STORE_ERRORS };

/** The names of the counters, gauges and timers that a file creates, without tags, with `*` for each placeholder. */
function namesIn(source: string): readonly string[] {
  return [...source.matchAll(/statistics\.(?:counter|gauge|timer)\(\s*(?:'([^']+)'|`([^`]+)`|([A-Z_]+)\))/g)].map(
    ([, text, template, constant = '']) =>
      text ?? template?.replace(/\.__.*/, '').replaceAll(/\$\{[^}]+\}/g, '*') ?? CONSTANTS[constant] ?? constant,
  );
}

/** Whether a documented name matches a name that the source code creates. */
function covers(written: string, made: string): boolean {
  const parts = made.split('*').map((part) => part.replaceAll('.', '\\.'));
  return new RegExp(`^${parts.join('[\\w<>]+')}$`).test(written);
}
