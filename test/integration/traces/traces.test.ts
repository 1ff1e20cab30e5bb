import { status } from '@grpc/grpc-js';
import { CollectorProcess } from '../../support/processes/collector-process';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import type { Span } from '../../support/servers/read-spans';
import { CALLER, type Headers, TracedService, callAndWindow, newTraceId, traceparent } from './traced-service';

const UUID_4 = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

let collector: CollectorProcess;
let service: TracedService;
beforeAll(async () => {
  collector = await CollectorProcess.start();
  service = await TracedService.start({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url('http'),
    // Concurrent calls share a pipeline window.
    KVSTORE_PIPELINE_WINDOW: '300ms',
  });
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await collector[Symbol.asyncDispose]();
});

function linkTo({ traceId, spanId }: Span) {
  return { traceId, spanId };
}

describe('the spans that a real collector receives', () => {
  const NAMED = {
    TRACING_SERVICE_NAME: 'limits',
    TRACING_SERVICE_NAMESPACE: 'edge',
    TRACING_SERVICE_INSTANCE_ID: 'limits-7',
    // The spans wait until the service ends.
    OTEL_BSP_SCHEDULE_DELAY: '600000',
  };
  const ofNamed = { 'service.name': 'limits', 'service.namespace': 'edge', 'service.instance.id': 'limits-7' };
  const byDefault = { 'service.name': 'RateLimit', 'service.instance.id': expect.stringMatching(UUID_4) };

  it.each<['http' | 'grpc', Headers, object]>([
    ['http', {}, byDefault],
    ['grpc', { TRACING_EXPORTER_PROTOCOL: 'grpc', ...NAMED }, ofNamed],
  ])('describe a call and its window in the trace of the caller, over %s', async (protocol, env, resource) => {
    await using named = await TracedService.start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url(protocol),
      OTEL_RESOURCE_ATTRIBUTES: 'zone=a,service.name=loses,service.version=7',
      OTEL_SERVICE_NAME: 'loses too',
      ...env,
    });
    const traceId = newTraceId();
    expect(await named.call({ ...traceparent(traceId), tracestate: 'vendor=1' })).toBe(status.OK);
    await named.shop.drain();
    const [call, window] = callAndWindow(await collector.trace(traceId, 2));
    expect(call).toMatchObject({
      name: 'envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
      scope: 'weir',
      parentSpanId: CALLER,
      traceState: 'vendor=1',
      resource: { ...resource, 'service.version': '7', zone: 'a' },
      attributes: {
        'rpc.system': 'grpc',
        'rpc.service': 'envoy.service.ratelimit.v3.RateLimitService',
        'rpc.method': 'ShouldRateLimit',
        'rpc.grpc.status_code': 0,
      },
      links: [],
      status: 'unset',
    });
    expect(window).toMatchObject({
      name: 'counter store pipeline',
      parentSpanId: call.spanId,
      traceState: 'vendor=1',
      attributes: { 'weir.window.operations': 1, 'weir.window.calls': 1 },
      links: [linkTo(call)],
      status: 'unset',
    });
    const moments = [call.start, window.start, window.end, call.end];
    expect(moments).toEqual([...moments].sort((a, b) => Number(a - b)));
    expect(Math.abs(Number(call.start / 1_000_000n) - Date.now())).toBeLessThan(60_000);
  });

  it('link the window of several calls to each of them, and each of them to the window', async () => {
    const traceIds = [newTraceId(), newTraceId(), newTraceId()];
    function spansOfCalls() {
      return collector.spans.filter(({ traceId }) => traceIds.includes(traceId));
    }
    const untraced = { traceparent: `00-${newTraceId()}-${CALLER}-00` };
    await Promise.all([...traceIds.map((traceId) => service.call(traceparent(traceId))), service.call(untraced)]);
    await collector.until('there are all spans', () => spansOfCalls().length >= 4);
    const [window, ...more] = spansOfCalls().filter(({ kind }) => kind === 'client');
    const calls = spansOfCalls().filter(({ kind }) => kind === 'server');
    expect(more).toEqual([]);
    expect(calls.map(({ traceId }) => traceId).sort()).toEqual(traceIds);
    // The four calls have the same key, hence one operation.
    expect(window?.attributes).toEqual({ 'weir.window.operations': 1, 'weir.window.calls': 4 });
    expect(new Set(window?.links)).toEqual(new Set(calls.map(linkTo)));
    for (const call of calls) {
      if (call.traceId === window?.traceId) expect([window.parentSpanId, call.links]).toEqual([call.spanId, []]);
      else expect(call.links).toEqual([linkTo(window as Span)]);
    }
  });

  it('describe requests to /json, in the trace of their headers', async () => {
    const [good, bad] = [newTraceId(), newTraceId()];
    expect((await service.json(traceparent(good))).status).toBe(200);
    expect((await service.json({ b3: `${bad}-${CALLER}-1` }, '?')).status).toBe(400);
    const [call] = callAndWindow(await collector.trace(good, 2));
    expect(call).toMatchObject({
      name: 'POST /json',
      parentSpanId: CALLER,
      attributes: { 'http.request.method': 'POST', 'http.route': '/json', 'http.response.status_code': 200 },
    });
    const [rejected] = await collector.trace(bad, 1);
    // An error of the caller is not an error of the service.
    expect(rejected).toMatchObject({ attributes: { 'http.response.status_code': 400 }, status: 'unset' });
  });

  it('follow the sampling decision of a caller in each form, at a rate of 0, which samples no other calls', async () => {
    const traceId = newTraceId();
    // How each form is read is tested in sinks/traces.test.ts.
    const multiple = { 'x-b3-traceid': traceId, 'x-b3-spanid': CALLER };
    const sampled = [traceparent(traceId), { b3: `${traceId}-${CALLER}-1` }, { ...multiple, 'x-b3-flags': '1' }];
    const others = [{}, { b3: '0' }, { b3: `${traceId}-${CALLER}` }, { ...multiple, 'x-b3-sampled': '0' }];
    await using unsampled = await TracedService.start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url('http'),
      TRACING_SAMPLING_RATE: '0',
      TRACING_SERVICE_INSTANCE_ID: 'rate 0',
      // OpenTelemetry's own setting has no effect.
      OTEL_TRACES_SAMPLER: 'always_on',
    });
    for (const headers of [...others, ...sampled]) await unsampled.call(headers);
    await unsampled.shop.drain();
    await collector.trace(traceId, 2 * sampled.length);
    const calls = collector.spans.filter(
      ({ resource, kind }) => resource['service.instance.id'] === 'rate 0' && kind === 'server',
    );
    expect(calls.map((call) => [call.traceId, call.parentSpanId])).toEqual(sampled.map(() => [traceId, CALLER]));
  });

  it('have the status error when the service failed, with the reason when the store did', async () => {
    await using redis = await RedisProcess.start();
    await using onRedis = await TracedService.start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url('http'),
      BACKEND_TYPE: 'kvstore',
      KVSTORE_URL: redis.address,
      KVSTORE_TIMEOUT: '3s',
      // Calls that are held back have no window.
      STORE_BREAKER_FAILURES: '0',
    });
    const [invalid, late, failed, json] = [newTraceId(), newTraceId(), newTraceId(), newTraceId()];
    expect(await onRedis.call(traceparent(invalid), new Uint8Array())).toBe(status.INVALID_ARGUMENT);
    expect(await collector.trace(invalid, 1)).toMatchObject([
      { attributes: { 'rpc.grpc.status_code': status.INVALID_ARGUMENT }, status: 'unset' },
    ]);

    redis.signal('SIGSTOP');
    expect(await onRedis.call({ ...traceparent(late), 'grpc-timeout': '500m' })).toBe(status.DEADLINE_EXCEEDED);
    const [lateCall, lateWindow] = callAndWindow(await collector.trace(late, 2));
    expect(lateWindow.status).toBe('error');
    const code = status.DEADLINE_EXCEEDED;
    expect(lateCall).toMatchObject({ attributes: { 'rpc.grpc.status_code': code }, status: 'error' });

    await redis.crash();
    expect(await onRedis.call(traceparent(failed))).toBe(status.UNAVAILABLE);
    const [call, window] = callAndWindow(await collector.trace(failed, 2));
    expect(call).toMatchObject({ attributes: { 'rpc.grpc.status_code': status.UNAVAILABLE }, status: 'error' });
    expect(window).toMatchObject({ attributes: { 'error.type': expect.stringMatching(/^store_/) }, status: 'error' });
    expect((await onRedis.json(traceparent(json))).status).toBe(503);
    const [request] = callAndWindow(await collector.trace(json, 2));
    expect(request).toMatchObject({ attributes: { 'http.response.status_code': 503 }, status: 'error' });
  });
});
