import { status } from '@grpc/grpc-js';
import type { Span } from '../../support/servers/read-spans';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { CollectorProcess } from './collector-process';
import { CALLER, TracedService, callAndWindow, newTraceId, traceparent } from './traced-service';

const UUID_4 = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

let collector: CollectorProcess;
beforeAll(async () => {
  collector = await CollectorProcess.start();
});
afterAll(() => collector[Symbol.asyncDispose]());

function linkTo({ traceId, spanId }: Span) {
  return { traceId, spanId };
}

/** The names of the service in spans: of a service with default settings, and of one that sets them. */
const NAMING = {
  http: { env: {}, resource: { 'service.name': 'RateLimit', 'service.instance.id': expect.stringMatching(UUID_4) } },
  grpc: {
    env: {
      TRACING_SERVICE_NAME: 'limits',
      TRACING_SERVICE_NAMESPACE: 'edge',
      TRACING_SERVICE_INSTANCE_ID: 'limits-7',
    },
    resource: { 'service.name': 'limits', 'service.namespace': 'edge', 'service.instance.id': 'limits-7' },
  },
} as const;

describe.each(['http', 'grpc'] as const)('spans that a real collector receives over %s', (protocol) => {
  let service: TracedService;
  beforeAll(async () => {
    service = await TracedService.start({
      TRACING_EXPORTER_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url(protocol),
      ...NAMING[protocol].env,
      OTEL_RESOURCE_ATTRIBUTES: 'zone=a,service.name=loses,service.version=7',
      OTEL_SERVICE_NAME: 'loses too',
      // Concurrent calls share a pipeline window.
      KVSTORE_PIPELINE_WINDOW: '300ms',
    });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('describe a call and its pipeline window in the trace of the caller', async () => {
    const traceId = newTraceId();
    expect(await service.call({ ...traceparent(traceId), tracestate: 'vendor=1' })).toBe(status.OK);
    const [call, window] = callAndWindow(await collector.trace(traceId, 2));
    expect(call).toMatchObject({
      name: 'envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
      scope: 'weir',
      parentSpanId: CALLER,
      traceState: 'vendor=1',
      attributes: {
        'rpc.system': 'grpc',
        'rpc.service': 'envoy.service.ratelimit.v3.RateLimitService',
        'rpc.method': 'ShouldRateLimit',
        'rpc.grpc.status_code': 0,
      },
      links: [],
      status: 'unset',
    });
    expect(call.resource).toMatchObject({ ...NAMING[protocol].resource, 'service.version': '7', zone: 'a' });
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
    const untraced = { traceparent: `00-${newTraceId()}-${CALLER}-00` };
    await Promise.all([...traceIds.map((traceId) => service.call(traceparent(traceId))), service.call(untraced)]);
    await collector.until('there are all spans', () => spansOf(traceIds).length >= 4);
    const spans = spansOf(traceIds);
    const [window, ...more] = spans.filter(({ kind }) => kind === 'client');
    const calls = spans.filter(({ kind }) => kind === 'server');
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

  it.each<[form: string, headers: (traceId: string) => Record<string, string>]>([
    ['in a single header', (traceId) => ({ b3: `${traceId}-${CALLER}-1` })],
    ['in multiple headers', (traceId) => ({ 'x-b3-traceid': traceId, 'x-b3-spanid': CALLER, 'x-b3-sampled': '1' })],
  ])('continue the trace of a caller that sends B3 %s', async (_, headers) => {
    const traceId = newTraceId();
    await service.call(headers(traceId));
    const [call] = callAndWindow(await collector.trace(traceId, 2));
    expect(call.parentSpanId).toBe(CALLER);
  });

  function spansOf(traceIds: readonly string[]) {
    return collector.spans.filter(({ traceId }) => traceIds.includes(traceId));
  }
});

describe('spans of calls that fail', () => {
  it('have the status error when the service failed, with the reason when the store did', async () => {
    await using redis = await RedisProcess.start();
    await using service = await TracedService.start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url('http'),
      BACKEND_TYPE: 'kvstore',
      KVSTORE_URL: redis.address,
      KVSTORE_TIMEOUT: '8s',
    });
    const [invalid, late, failed, json] = [newTraceId(), newTraceId(), newTraceId(), newTraceId()];
    const message = new Uint8Array();
    expect(await service.call(traceparent(invalid), { message })).toBe(status.INVALID_ARGUMENT);
    expect(await collector.trace(invalid, 1)).toMatchObject([
      { attributes: { 'rpc.grpc.status_code': status.INVALID_ARGUMENT }, status: 'unset' },
    ]);

    redis.signal('SIGSTOP');
    expect(await service.call(traceparent(late), { deadline: Date.now() + 4_000 })).toBe(status.DEADLINE_EXCEEDED);
    const [lateCall, lateWindow] = callAndWindow(await collector.trace(late, 2));
    expect(lateWindow.status).toBe('error');
    // A caller that disconnected is not an error of the service; a deadline that passed is one.
    expect(lateCall.attributes['rpc.grpc.status_code'] === status.DEADLINE_EXCEEDED).toBe(lateCall.status === 'error');

    expect(await service.call(traceparent(failed))).toBe(status.UNAVAILABLE);
    const [call, window] = callAndWindow(await collector.trace(failed, 2));
    expect(call).toMatchObject({ attributes: { 'rpc.grpc.status_code': status.UNAVAILABLE }, status: 'error' });
    expect(window).toMatchObject({
      attributes: { 'error.type': expect.stringMatching(/^store_(failed|timeout)$/) },
      status: 'error',
    });

    expect((await service.json(traceparent(json))).status).toBe(503);
    const [request] = callAndWindow(await collector.trace(json, 2));
    expect(request).toMatchObject({ attributes: { 'http.response.status_code': 503 }, status: 'error' });
  });
});
