import { status } from '@grpc/grpc-js';
import { CollectorProcess } from '../../support/processes/collector-process';
import { freePorts } from '../../support/processes/free-ports';
import { WeirProcess } from '../../support/processes/weir-process';
import { FaultProxy } from '../../support/servers/fault-proxy';
import { until } from '../../support/waiting/until';
import { TracedService, newTraceId, traceparent } from './traced-service';

describe.each(['http', 'grpc'] as const)('a collector over %s', (TRACING_EXPORTER_PROTOCOL) => {
  const protocol = TRACING_EXPORTER_PROTOCOL;
  it('may start after the service and restart; each change is logged once', async () => {
    const [http, grpc] = await freePorts(2);
    const ports = { http, grpc };
    await using service = await TracedService.start({
      TRACING_EXPORTER_PROTOCOL,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${ports[protocol]}`,
      OTEL_EXPORTER_OTLP_TIMEOUT: '5000',
    });
    /** The log messages about the collector, in order. */
    function messages() {
      return service.shop.weir.output.match(/(?:cannot export|resumed exporting) traces/g) ?? [];
    }
    for (let time = 1; time <= 2; time += 1) {
      for (let calls = 0; calls < 20; calls += 1) expect(await service.call()).toBe(status.OK);
      await service.shop.weir.until('the failure is logged', () => messages().at(-1) === 'cannot export traces');
      await using collector = await CollectorProcess.start(ports);
      // Spans may be lost until an export has succeeded again.
      await service.shop.weir.until('the recovery is logged', async () => {
        await service.call();
        return messages().at(-1) === 'resumed exporting traces';
      });
      const traceId = newTraceId();
      await service.call(traceparent(traceId));
      await collector.trace(traceId, 2);
    }
    await service.call();
    await service.shop.drain();
    const changes = messages();
    expect(changes.length).toBeGreaterThanOrEqual(4);
    expect(changes.filter((change, index) => change === changes[index - 1])).toEqual([]);
  });

  it('that refuses connections receives the spans with a retry', async () => {
    await using collector = await CollectorProcess.start();
    await using proxy = await FaultProxy.start(() => ({ port: collector.ports[protocol] }));
    proxy.fault = 'refused';
    await using service = await TracedService.start({
      TRACING_EXPORTER_PROTOCOL,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://${proxy.address}`,
    });
    const traceId = newTraceId();
    await service.call(traceparent(traceId));
    await until('an export is tried', () => proxy.accepted > 0);
    proxy.fault = 'none';
    expect(await collector.trace(traceId, 2)).toHaveLength(2);
    expect(service.shop.weir.output).not.toContain('cannot export traces');
  });
});

it('invalid standard settings of the OTLP exporter prevent the start when there is no default', async () => {
  await using weir = await WeirProcess.start({
    env: { TRACING_ENABLED: 'true', TRACING_EXPORTER_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_ENDPOINT: ':::' },
    awaitServing: false,
  });
  expect(await weir.exited).toBe(1);
  expect(weir.output).toMatch(/OTEL_EXPORTER_OTLP_\*.*Invalid URL/);
});
