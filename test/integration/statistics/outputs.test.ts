import { status } from '@grpc/grpc-js';
import { RateLimitRequest } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import { RateLimitClient } from '../../support/clients/grpc-client';
import { callByHand } from '../../support/clients/call-by-hand';
import { RuleFolder } from '../../support/data/rule-folder';
import { WeirProcess } from '../../support/processes/weir-process';
import { roomInMinute } from '../../support/waiting/window-room';
import { TcpReceiver, UdpReceiver } from '../../support/servers/statsd-receivers';
import { startStatsdDaemons } from './statsd-daemons';

const RULES = `
domain: shop
descriptors:
  - key: plain
    rate_limit: { unit: day, requests_per_unit: 10 }
  - key: shadow
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 1 }
  - key: user
    detailed_metric: true
    rate_limit: { unit: day, requests_per_unit: 100 }
    descriptors:
      - key: path
        detailed_metric: true
        rate_limit: { unit: day, requests_per_unit: 100 }
`;

async function metricsPort(weir: WeirProcess) {
  return Number(/port=(\d+)/.exec(await weir.line(/metrics listener opened/))?.[1]);
}

async function scrape(port: number, headers: Record<string, string> = {}) {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`, { headers });
  return { response, text: await response.text() };
}

describe('a statistic on every output', () => {
  let folder: RuleFolder;
  let daemons: Awaited<ReturnType<typeof startStatsdDaemons>>;
  let weir: WeirProcess;
  let page: string;

  /** Calls that change statistics, one or more with each line. */
  async function work(): Promise<void> {
    using client = new RateLimitClient(weir.grpcAddress);
    await client.shouldRateLimit('shop', ['plain'], 10);
    await client.shouldRateLimit('shop', ['plain']);
    await client.shouldRateLimit('shop', ['plain']);
    await Promise.all([
      client.shouldRateLimit('shop', ['user=a,path=x']),
      client.shouldRateLimit('shop', ['user=a,path=x']),
    ]);
    await client.shouldRateLimit('shop', ['shadow'], 2);
    await client.shouldRateLimit('shop', ['user=back']);
    await client.shouldRateLimit('shop', [
      { entries: [{ key: 'user', value: 'back' }], limit: undefined, hitsAddend: 3n, isNegativeHits: true },
    ] as never);
    await client.shouldRateLimit('nowhere', ['plain', 'plain']);
    await expect(client.shouldRateLimit('', ['plain'])).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });

    const health = callByHand(weir.grpcAddress, '/grpc.health.v1.Health/Check', new Uint8Array());
    expect(await health).toBe(status.OK);
    const late = RateLimitRequest.encode({
      domain: 'shop',
      descriptors: [
        { entries: [{ key: 'user', value: 'late' }], limit: undefined, hitsAddend: undefined, isNegativeHits: false },
      ],
      hitsAddend: 0,
    }).finish();
    expect(await callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, late, { 'grpc-timeout': '200m' })).toBe(
      status.DEADLINE_EXCEEDED,
    );
    await folder.write('bad.yaml', 'domain: [');
    await weir.line(/new rules rejected/);
  }

  beforeAll(async () => {
    await roomInMinute();
    folder = await RuleFolder.with({ 'shop.yaml': RULES });
    daemons = await startStatsdDaemons();
    weir = await WeirProcess.start({
      env: {
        ...folder.env,
        USE_STATSD: 'true',
        USE_DOG_STATSD: 'true',
        USE_PROMETHEUS: 'true',
        STATSD_HOST: '127.0.0.1',
        STATSD_PORT: String(daemons.tcp.port),
        PROMETHEUS_ADDR: '127.0.0.1:0',
        STATS_FLUSH_INTERVAL: '100ms',
        EXTRA_TAGS: 'stage:prod,az:eu.1',
        USE_DOG_STATSD_MOGRIFIERS: 'rules',
        DOG_STATSD_MOGRIFIER_RULES_PATTERN: String.raw`^ratelimit\.service\.rate_limit\.(?P<domain>[^.]+)\.(.+)\.([^.]+)$`,
        DOG_STATSD_MOGRIFIER_RULES_NAME: 'ratelimit.service.rate_limit.$3',
        DOG_STATSD_MOGRIFIER_RULES_TAGS: 'domain:$1,descriptor:$2',
        LOCAL_CACHE_SIZE_IN_BYTES: '1000000',
        KVSTORE_PIPELINE_WINDOW: '400ms',
        // Clients of Datadog add tags and statistics of their own for these.
        DD_ENV: 'other',
        DD_SERVICE: 'other',
        DD_ENTITY_ID: 'other',
        DD_TAGS: 'other:1',
        DD_EXTERNAL_ENV: 'other',
        DD_AGENT_HOST: 'nowhere.invalid',
      },
    });
    await work();
    const { tcp, udp } = daemons;
    const last = 'ratelimit.service.config_load_error';
    await tcp.until('the last statistic', () => tcp.sum(`${last}.__az=eu_1.__stage=prod`) === 1);
    await udp.until('the last statistic', () => udp.sum(last) === 1);
    page = (await scrape(await metricsPort(weir))).text;
  });
  afterAll(async () => {
    await weir[Symbol.asyncDispose]();
    await daemons.tcp[Symbol.asyncDispose]();
    await daemons.udp[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  function pushed(name: string) {
    return daemons.tcp.sum(`${name}.__az=eu_1.__stage=prod`);
  }
  function tagged(name: string, tags = '') {
    const all = ['az:eu_1', ...(tags === '' ? [] : tags.split(',')), 'stage:prod'].join(',');
    return daemons.udp.lines
      .filter((line) => line.startsWith(`${name}:`) && line.endsWith(`|c|#${all}`))
      .reduce((sum, line) => sum + Number.parseFloat(line.slice(name.length + 1)), 0);
  }
  function pulled(metric: string, labels = '') {
    const text = ['az="eu.1"', ...(labels === '' ? [] : labels.split(',')), 'stage="prod"'].toSorted().join(',');
    const line = page.split('\n').find((each) => each.startsWith(`${metric}{${text}} `));
    return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ')));
  }

  const RULE = 'ratelimit.service.rate_limit';

  it.each([
    ['plain', 'total_hits', 12],
    ['plain', 'within_limit', 10],
    ['plain', 'near_limit', 2],
    ['plain', 'over_limit', 2],
    ['plain', 'over_limit_with_local_cache', 1],
    ['shadow', 'shadow_mode', 1],
    ['shadow', 'over_limit', 1],
    ['user_a.path_x', 'total_hits', 2],
    ['user_late', 'total_hits', 1],
    ['user_back', 'total_negative_hits', 3],
  ])('%s.%s of a rule is %i', (key, stat, value) => {
    expect(pushed(`${RULE}.shop.${key}.${stat}`)).toBe(value);
    expect(tagged(`${RULE}.${stat}`, `descriptor:${key},domain:shop`)).toBe(value);
    const [key1, key2] = key.split('.');
    const isMapped = ['near_limit', 'over_limit', 'total_hits', 'within_limit', 'shadow_mode'].includes(stat);
    const labels = `domain="shop",key1="${key1}"${key2 === undefined ? '' : `,key2="${key2}"`}`;
    expect(
      isMapped
        ? pulled(`ratelimit_service_rate_limit_${stat}`, labels)
        : pulled(`ratelimit_service_rate_limit_shop_${key.replace('.', '_')}_${stat}`),
    ).toBe(value);
  });

  it.each([
    [
      'ratelimit.service.call.should_rate_limit.service_error',
      1,
      'ratelimit_service_should_rate_limit_error',
      'err_type="service_error"',
    ],
    [
      'ratelimit.service.call.should_rate_limit.redis_error',
      1,
      'ratelimit_service_should_rate_limit_error',
      'err_type="redis_error"',
    ],
    [
      'ratelimit_server.ShouldRateLimit.total_requests',
      11,
      'ratelimit_service_total_requests',
      'grpc_method="ShouldRateLimit"',
    ],
    ['ratelimit_server.Check.total_requests', 1, 'ratelimit_service_total_requests', 'grpc_method="Check"'],
    ['ratelimit.service.config_load_success', 1, 'ratelimit_service_config_load_success', ''],
    ['ratelimit.service.config_load_error', 1, 'ratelimit_service_config_load_error', ''],
    ['ratelimit.pipeline.merged_hits', 1, 'ratelimit_pipeline_merged_hits', ''],
    ['runtime.load_attempts', 2, 'runtime_load_attempts', ''],
    ['runtime.load_failures', 1, 'runtime_load_failures', ''],
  ])('%s of the service is %i', (name, value, metric, labels) => {
    expect([pushed(name), tagged(name), pulled(metric, labels)]).toEqual([value, value, value]);
  });

  it('domain_not_found of an unknown domain counts each descriptor', () => {
    expect(pushed(`${RULE}.nowhere.domain_not_found`)).toBe(2);
    expect(pulled('ratelimit_service_rate_limit_nowhere_domain_not_found')).toBe(2);
  });

  it.each([
    ['runtime.num_values', 1],
    ['ratelimit.localcache.entryCount', 2],
    ['ratelimit.localcache.hitCount', 1],
    ['ratelimit.localcache.missCount', 7],
    ['ratelimit.localcache.lookupCount', 8],
    ['ratelimit.localcache.evacuateCount', 0],
    ['ratelimit.localcache.expiredCount', 0],
    ['ratelimit.localcache.overwriteCount', 0],
    ['ratelimit.statistics.runtime_keys', 4],
    ['ratelimit.statistics.rolled_up', 0],
  ])('the gauge %s is %i', (name, value) => {
    const gauge = `${name}.__az=eu_1.__stage=prod:${value}|g`;
    expect(daemons.tcp.lines).toContain(gauge);
    expect(daemons.udp.lines).toContain(`${name}:${value}|g|#az:eu_1,stage:prod`);
    expect(pulled(name.replaceAll('.', '_'))).toBe(value);
  });

  it('a gauge that changes all the time is present', () => {
    for (const name of [
      'ratelimit.localcache.averageAccessTime',
      'ratelimit.pipeline.window_size',
      'ratelimit.memory.keys',
    ]) {
      expect(daemons.tcp.lines.some((line) => line.startsWith(`${name}.__az=eu_1.__stage=prod:`))).toBe(true);
      expect(pulled(name.replaceAll('.', '_'))).toBeGreaterThanOrEqual(0);
    }
  });

  it('is not accompanied by tags or statistics of a client library', () => {
    expect(daemons.udp.lines.filter((line) => /other|datadog/.test(line))).toEqual([]);
    expect(daemons.udp.lines.filter((line) => !/^[^:|]+:[^:|]+\|(?:c|g|ms)\|#[^|]+$/.test(line))).toEqual([]);
  });

  it('a duration is recorded per call, failed ones included: in whole milliseconds when pushed, in seconds when scraped', async () => {
    const name = 'ratelimit_server.ShouldRateLimit.response_time';
    const durations = daemons.tcp.lines.filter((line) => line.startsWith(`${name}.`));
    expect(durations).toHaveLength(11);
    expect(durations.every((line) => /^\S+\.__az=eu_1\.__stage=prod:\d+\|ms$/.test(line))).toBe(true);
    const taggedDurations = daemons.udp.lines.filter((line) => line.startsWith(`${name}:`));
    expect(taggedDurations).toHaveLength(11);
    expect(taggedDurations.every((line) => /^\S+:\d+\|ms\|#az:eu_1,stage:prod$/.test(line))).toBe(true);
    const metric = 'ratelimit_service_response_time_seconds';
    expect(pulled(`${metric}_count`, 'grpc_method="ShouldRateLimit"')).toBe(11);
    // Most of them waited for a pipeline window of 400 ms.
    const sum = durations.reduce((all, line) => all + Number.parseFloat(line.slice(line.lastIndexOf(':') + 1)), 0);
    expect(sum).toBeGreaterThan(2_000);
    const seconds = pulled(`${metric}_sum`, 'grpc_method="ShouldRateLimit"') ?? 0;
    expect(seconds * 1000 - sum).toBeGreaterThanOrEqual(0);
    expect(seconds * 1000 - sum).toBeLessThan(durations.length);
    expect((await weir.statistics()).get(`${name}.count`)).toBe(11);
    expect((await weir.statistics()).get(`${name}.p99_ms`)).toBeGreaterThan(50);
  });

  it('metrics of the process and of Node are included when scraped', () => {
    expect(pulled('process_cpu_seconds_total')).toBeGreaterThan(0);
    expect(pulled('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0);
  });
});

describe('the metrics listener', () => {
  let weir: WeirProcess;
  let port: number;
  beforeAll(async () => {
    weir = await WeirProcess.start({
      env: { USE_PULLMETRICS: 'true', PULLMETRICS_ADDR: '127.0.0.1:0', FORCE_START_WITHOUT_INITIAL_CONFIG: 'true' },
    });
    port = await metricsPort(weir);
  });
  afterAll(() => weir[Symbol.asyncDispose]());

  it('responds in the Prometheus text format, compressed on request', async () => {
    const { response, text } = await scrape(port, { 'Accept-Encoding': 'gzip' });
    expect([response.status, response.headers.get('content-type'), response.headers.get('content-encoding')]).toEqual([
      200,
      'text/plain; version=0.0.4; charset=utf-8',
      'gzip',
    ]);
    expect(text).toMatch(/^# HELP [\s\S]*\n$/);
    const plain = await scrape(port, { 'Accept-Encoding': 'identity' });
    expect(plain.response.headers.get('content-encoding')).toBeNull();
    expect(plain.text).toContain('# TYPE process_cpu_seconds_total counter\n');
  });

  it('serves only its path, and only GET and HEAD', async () => {
    async function statusOf(path: string, method: string) {
      return (await fetch(`http://127.0.0.1:${port}${path}`, { method })).status;
    }
    expect(await statusOf('/metrics', 'HEAD')).toBe(200);
    expect(await statusOf('/metrics', 'POST')).toBe(405);
    expect(await statusOf('/', 'GET')).toBe(404);
    expect(await statusOf('/metrics/', 'GET')).toBe(404);
  });

  it('survives scrapers that abort the request', async () => {
    for (let scrapes = 0; scrapes < 20; scrapes += 1) {
      const controller = new AbortController();
      const aborted = fetch(`http://127.0.0.1:${port}/metrics`, { signal: controller.signal });
      controller.abort();
      await expect(aborted).rejects.toThrow('aborted');
    }
    expect((await scrape(port)).response.status).toBe(200);
  });

  it('disables the default push output', async () => {
    expect(weir.output).not.toContain('cannot send statistics');
  });
});

describe('statistics on standard output', () => {
  it('are written as one JSON object per line when no other output is enabled', async () => {
    await using folder = await RuleFolder.with({
      'shop.yaml': 'domain: shop\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 0 } }]',
    });
    await using weir = await WeirProcess.start({
      env: { ...folder.env, USE_PUSHSTATS: 'false', STATS_FLUSH_INTERVAL: '100ms', SHADOW_MODE: 'true' },
    });
    using client = new RateLimitClient(weir.grpcAddress);
    await client.shouldRateLimit('shop', ['k']);
    const line = await weir.line(/global_shadow_mode/);
    expect(JSON.parse(line)).toEqual({
      level: 'debug',
      ts: expect.any(Number),
      logger: 'gostats.loggingsink',
      msg: 'flushing counter',
      json: { name: 'ratelimit.service.global_shadow_mode', type: 'counter', value: '1.000000' },
    });
    await weir.line(/"name":"ratelimit_server.ShouldRateLimit.response_time","type":"timer"/);
    await weir.line(/"name":"ratelimit.statistics.runtime_keys","type":"gauge"/);
  });
});

describe('a statsd daemon', () => {
  const env = { FORCE_START_WITHOUT_INITIAL_CONFIG: 'true', PUSHSTATS_HOST: '127.0.0.1' };

  it('receives the counts since the last flush before the service ends', async () => {
    await using receiver = await TcpReceiver.start();
    await using weir = await WeirProcess.start({
      env: { ...env, PUSHSTATS_PORT: String(receiver.port), STATS_FLUSH_INTERVAL: '1h' },
    });
    using client = new RateLimitClient(weir.grpcAddress);
    await expect(client.shouldRateLimit('shop', ['k'])).rejects.toThrow('no rate limit configuration loaded');
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    const name = 'ratelimit.service.call.should_rate_limit.service_error';
    await receiver.until('the count', () => receiver.sum(name) === 1);
  });

  it('that does not read delays neither decisions nor the shutdown', async () => {
    await using receiver = await TcpReceiver.start({ reads: false });
    await using weir = await WeirProcess.start({
      env: { ...env, PUSHSTATS_PORT: String(receiver.port), STATS_FLUSH_INTERVAL: '10ms' },
    });
    using client = new RateLimitClient(weir.grpcAddress);
    for (let call = 0; call < 50; call += 1)
      await expect(client.shouldRateLimit('shop', ['k'])).rejects.toMatchObject({ code: 9 });
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
  });

  it('is reached over UDP with PUSHSTATS_PROTOCOL=udp', async () => {
    await using receiver = await UdpReceiver.start();
    await using weir = await WeirProcess.start({
      env: { ...env, STATSD_PORT: String(receiver.port), STATSD_PROTOCOL: 'udp', STATS_FLUSH_INTERVAL: '50ms' },
    });
    await receiver.until('a gauge', () => receiver.lines.includes('ratelimit.statistics.runtime_keys:0|g'));
    expect(weir.isRunning).toBe(true);
  });

  it('receives nothing with DISABLE_STATS, and no metrics listener is opened', async () => {
    await using receiver = await TcpReceiver.start();
    await using weir = await WeirProcess.start({
      env: {
        ...env,
        USE_PUSHSTATS: 'true',
        USE_PULLMETRICS: 'true',
        PUSHSTATS_PORT: String(receiver.port),
        STATS_FLUSH_INTERVAL: '10ms',
        DISABLE_STATS: 'true',
      },
    });
    using client = new RateLimitClient(weir.grpcAddress);
    await expect(client.shouldRateLimit('shop', ['k'])).rejects.toMatchObject({ code: 9 });
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    expect(receiver.connections).toBe(0);
    expect(weir.output).not.toContain('metrics listener opened');
  });
});

describe('the service does not start, and names the setting, with', () => {
  it.each<[title: string, env: Record<string, string>, message: RegExp]>([
    [
      'an invalid mogrifier',
      {
        USE_DOG_STATSD: 'true',
        USE_DOG_STATSD_MOGRIFIERS: 'a',
        DOG_STATSD_MOGRIFIER_A_PATTERN: '(?=x)',
        DOG_STATSD_MOGRIFIER_A_NAME: 'x',
      },
      /DOG_STATSD_MOGRIFIER_A_PATTERN is not a valid regular expression: invalid or unsupported Perl syntax: \(\?=/,
    ],
    [
      'a mapping file that does not exist',
      { USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: '127.0.0.1:0', PROMETHEUS_MAPPER_YAML: '/nowhere.yaml' },
      /PROMETHEUS_MAPPER_YAML=\/nowhere\.yaml cannot be used: .*no such file/,
    ],
    [
      'an invalid mapping file',
      { USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: '127.0.0.1:0', PROMETHEUS_MAPPER_YAML: __filename },
      /PROMETHEUS_MAPPER_YAML=.*outputs\.test\.ts cannot be used: line \d+: /,
    ],
    [
      'a mapping file that is too large',
      { USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: '127.0.0.1:0', PROMETHEUS_MAPPER_YAML: process.execPath },
      /PROMETHEUS_MAPPER_YAML=.* cannot be used: the file has \d+ bytes, more than the limit of 4194304/,
    ],
    [
      'a device as the mapping file',
      { USE_PROMETHEUS: 'true', PROMETHEUS_ADDR: '127.0.0.1:0', PROMETHEUS_MAPPER_YAML: '/dev/zero' },
      /PROMETHEUS_MAPPER_YAML=\/dev\/zero cannot be used: it is not a regular file/,
    ],
  ])('%s', async (_, env, message) => {
    await using weir = await WeirProcess.start({ env, awaitServing: false });
    expect(await weir.exited).toBe(1);
    expect(weir.output).toMatch(message);
    expect(weir.output).not.toMatch(/serving/);
  });

  it('an address that is in use', async () => {
    await using other = await TcpReceiver.start();
    const env = { USE_PULLMETRICS: 'true', PULLMETRICS_ADDR: `127.0.0.1:${other.port}` };
    await using weir = await WeirProcess.start({ env, awaitServing: false });
    expect(await weir.exited).toBe(1);
    expect(weir.output).toContain(
      `cannot listen on 127.0.0.1:${other.port}: another process is already listening there (EADDRINUSE)`,
    );
  });
});
