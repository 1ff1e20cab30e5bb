import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import { FaultProxy } from '../../support/servers/fault-proxy';
import { until } from '../../support/waiting/until';
import { CollectorProcess, freeCollectorPorts } from './collector-process';
import { type Headers, TracedService, newTraceId, traceparent } from './traced-service';

describe.each(['http', 'grpc'] as const)('a collector over %s', (protocol) => {
  it('may start after the service and restart; each change is logged once', async () => {
    const ports = await freeCollectorPorts();
    await using service = await TracedService.start({
      TRACING_EXPORTER_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${ports[protocol]}`,
      OTEL_EXPORTER_OTLP_TIMEOUT: '5000',
    });
    /** The log messages about the collector, in order. */
    function messages() {
      return service.weir.output.match(/(?:cannot export|resumed exporting) traces/g) ?? [];
    }
    for (let time = 1; time <= 2; time += 1) {
      for (let calls = 0; calls < 20; calls += 1) expect(await service.call()).toBe(status.OK);
      await service.weir.until('the failure is logged', () => messages().at(-1) === 'cannot export traces');
      await using collector = await CollectorProcess.start(ports);
      // Spans may be lost until an export has succeeded again.
      await service.weir.until('the recovery is logged', async () => {
        await service.call();
        return messages().at(-1) === 'resumed exporting traces';
      });
      const traceId = newTraceId();
      await service.call(traceparent(traceId));
      await collector.trace(traceId, 2);
    }
    await service.call();
    await service.end();
    const changes = messages();
    expect(changes.length).toBeGreaterThanOrEqual(4);
    expect(changes).toEqual(
      changes.map((_, index) => (index % 2 === 0 ? 'cannot export traces' : 'resumed exporting traces')),
    );
  });

  it('receives the queued spans when the service ends', async () => {
    await using collector = await CollectorProcess.start();
    await using service = await TracedService.start({
      TRACING_EXPORTER_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url(protocol),
      OTEL_BSP_SCHEDULE_DELAY: '600000',
    });
    const traceId = newTraceId();
    await service.call(traceparent(traceId));
    expect(collector.spans).toEqual([]);
    await service.end();
    await collector.trace(traceId, 2);
  });
});

function overBoth<T>(run: (protocol: 'http' | 'grpc') => Promise<T>) {
  return Promise.all([run('http'), run('grpc')]);
}

describe('an unavailable collector', () => {
  it('receives the spans with a retry once it is available', async () => {
    await overBoth(async (protocol) => {
      await using collector = await CollectorProcess.start();
      await using proxy = await FaultProxy.start(() => ({ port: collector.ports[protocol] }));
      proxy.fault = 'refused';
      await using service = await TracedService.start({
        TRACING_EXPORTER_PROTOCOL: protocol,
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://${proxy.address}`,
      });
      const traceId = newTraceId();
      await service.call(traceparent(traceId));
      await until('an export is tried', () => proxy.accepted > 0);
      proxy.fault = 'none';
      expect(await collector.trace(traceId, 2)).toHaveLength(2);
      expect(service.weir.output).not.toContain('cannot export traces');
    });
  });

  it('does not delay the shutdown when it hangs', async () => {
    await overBoth(async (protocol) => {
      await using collector = await CollectorProcess.start();
      await using service = await TracedService.start({
        TRACING_EXPORTER_PROTOCOL: protocol,
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url(protocol),
        OTEL_BSP_SCHEDULE_DELAY: '600000',
      });
      expect(await service.call()).toBe(status.OK);
      collector.hang();
      const begun = Date.now();
      await service.end();
      // The exporter's own timeout is ten seconds.
      expect(Date.now() - begun).toBeLessThan(8_000);
    });
  });
});

describe('OpenTelemetry packages', () => {
  it.each<[title: string, env: Headers, loaded: readonly RegExp[], absent: readonly RegExp[]]>([
    ['are not loaded without TRACING_ENABLED', { TRACING_ENABLED: 'false' }, [], [/opentelemetry/]],
    ['include only the exporter over HTTP by default', {}, [/exporter-trace-otlp-proto$/], [/exporter.*grpc$/]],
    [
      'include only the exporter over gRPC with TRACING_EXPORTER_PROTOCOL=grpc',
      { TRACING_EXPORTER_PROTOCOL: 'grpc' },
      [/exporter-trace-otlp-grpc$/],
      [/exporter.*proto$/],
    ],
  ])('%s', async (_, env, loaded, absent) => {
    const folder = await mkdtemp(join(tmpdir(), 'weir-loaded-'));
    const list = join(folder, 'packages.txt');
    await using collector = await CollectorProcess.start();
    await using service = await TracedService.start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url('http'),
      OTEL_EXPORTER_OTLP_TIMEOUT: '5000',
      ...env,
      NODE_OPTIONS: `--require ${join(__dirname, 'list-loaded.cjs')}`,
      LIST_LOADED_TO: list,
    });
    await service.call();
    await service.json({});
    await service.end();
    const packages = (await readFile(list, 'utf8')).trimEnd().split('\n');
    await rm(folder, { recursive: true });
    expect(packages).toContain('rxjs');
    for (const pattern of loaded) expect(packages).toContainEqual(expect.stringMatching(pattern));
    for (const pattern of absent) expect(packages).not.toContainEqual(expect.stringMatching(pattern));
  });
});
