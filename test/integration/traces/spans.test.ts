import { status } from '@grpc/grpc-js';
import type { Span } from '../../support/servers/read-spans';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { CollectorProcess } from './collector-process';
import { CALLER, TracedService, callAndTrip, newTraceId, traceparent } from './traced-service';

const UUID_4 = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

let collector: CollectorProcess;
beforeAll(async () => {
  collector = await CollectorProcess.start();
});
afterAll(() => collector[Symbol.asyncDispose]());

function linkTo({ traceId, spanId }: Span) {
  return { traceId, spanId };
}

describe.each(['http', 'grpc'] as const)('spans that a real collector takes over %s', (protocol) => {
  let service: TracedService;
  beforeAll(async () => {
    service = await TracedService.start({
      TRACING_EXPORTER_PROTOCOL: protocol,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url(protocol),
      TRACING_SERVICE_NAMESPACE: 'edge',
      OTEL_RESOURCE_ATTRIBUTES: 'zone=a,service.name=loses,service.version=7',
      OTEL_SERVICE_NAME: 'loses too',
      // Calls that are made together share a window.
      KVSTORE_PIPELINE_WINDOW: '100ms',
    });
  });
  afterAll(() => service[Symbol.asyncDispose]());

  it('tell of a call and of its trip to the store, in the trace of the caller', async () => {
    const traceId = newTraceId();
    expect(await service.call({ ...traceparent(traceId), tracestate: 'vendor=1' })).toBe(status.OK);
    const [call, trip] = callAndTrip(await collector.trace(traceId, 2));
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
    expect(call.resource).toMatchObject({
      'service.name': 'RateLimit',
      'service.namespace': 'edge',
      'service.instance.id': expect.stringMatching(UUID_4),
      'service.version': '7',
      zone: 'a',
    });
    expect(trip).toMatchObject({
      name: 'counter store pipeline',
      parentSpanId: call.spanId,
      traceState: 'vendor=1',
      attributes: { 'weir.window.operations': 1, 'weir.window.calls': 1 },
      links: [linkTo(call)],
      status: 'unset',
    });
    const moments = [call.begun, trip.begun, trip.ended, call.ended];
    expect(moments).toEqual([...moments].sort((a, b) => Number(a - b)));
    expect(Math.abs(Number(call.begun / 1_000_000n) - Date.now())).toBeLessThan(60_000);
  });

  it('link the trip of several calls to each of them, and each of them to the trip', async () => {
    const traceIds = [newTraceId(), newTraceId(), newTraceId()];
    const untraced = { traceparent: `00-${newTraceId()}-${CALLER}-00` };
    await Promise.all([...traceIds.map((traceId) => service.call(traceparent(traceId))), service.call(untraced)]);
    await collector.until('there are all spans', () => spansOf(traceIds).length >= 4);
    const spans = spansOf(traceIds);
    const [trip, ...more] = spans.filter(({ kind }) => kind === 'client');
    const calls = spans.filter(({ kind }) => kind === 'server');
    expect(more).toEqual([]);
    expect(calls.map(({ traceId }) => traceId).sort()).toEqual(traceIds);
    // The four ask for the same: that is one operation.
    expect(trip?.attributes).toEqual({ 'weir.window.operations': 1, 'weir.window.calls': 4 });
    expect(new Set(trip?.links)).toEqual(new Set(calls.map(linkTo)));
    for (const call of calls) {
      if (call.traceId === trip?.traceId) expect([trip.parentSpanId, call.links]).toEqual([call.spanId, []]);
      else expect(call.links).toEqual([linkTo(trip as Span)]);
    }
  });

  it('tell of requests to /json too, by their headers', async () => {
    const [good, bad] = [newTraceId(), newTraceId()];
    expect((await service.json(traceparent(good))).status).toBe(200);
    expect((await service.json({ b3: `${bad}-${CALLER}-1` }, '?')).status).toBe(400);
    const [call] = callAndTrip(await collector.trace(good, 2));
    expect(call).toMatchObject({
      name: 'POST /json',
      parentSpanId: CALLER,
      attributes: { 'http.request.method': 'POST', 'http.route': '/json', 'http.response.status_code': 200 },
    });
    const [refused] = await collector.trace(bad, 1);
    // What the caller did wrong is no error of the service.
    expect(refused).toMatchObject({ attributes: { 'http.response.status_code': 400 }, status: 'unset' });
  });

  it.each<[form: string, headers: (traceId: string) => Record<string, string>]>([
    ['in one field', (traceId) => ({ b3: `${traceId}-${CALLER}-1` })],
    ['in several fields', (traceId) => ({ 'x-b3-traceid': traceId, 'x-b3-spanid': CALLER, 'x-b3-sampled': '1' })],
  ])('go on in the trace of a caller that says it as B3 %s', async (_, headers) => {
    const traceId = newTraceId();
    await service.call(headers(traceId));
    const [call] = callAndTrip(await collector.trace(traceId, 2));
    expect(call.parentSpanId).toBe(CALLER);
  });

  function spansOf(traceIds: readonly string[]) {
    return collector.spans.filter(({ traceId }) => traceIds.includes(traceId));
  }
});

describe('spans of calls that fail', () => {
  it('are errors where it is the service that failed, and say why the store did', async () => {
    await using redis = await RedisProcess.start();
    await using service = await TracedService.start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url('http'),
      BACKEND_TYPE: 'kvstore',
      KVSTORE_URL: redis.address,
      KVSTORE_TIMEOUT: '300ms',
    });
    const [refused, late, failed, json] = [newTraceId(), newTraceId(), newTraceId(), newTraceId()];
    const message = new Uint8Array();
    expect(await service.call(traceparent(refused), { message })).toBe(status.INVALID_ARGUMENT);
    expect(await collector.trace(refused, 1)).toMatchObject([
      { attributes: { 'rpc.grpc.status_code': status.INVALID_ARGUMENT }, status: 'unset' },
    ]);

    redis.signal('SIGSTOP');
    expect(await service.call(traceparent(late), { deadline: Date.now() + 100 })).toBe(status.DEADLINE_EXCEEDED);
    const [lateCall, lateTrip] = callAndTrip(await collector.trace(late, 2));
    expect(lateTrip.status).toBe('error');
    // A caller that has gone is not told of as an error of the service; whose deadline has passed, is.
    expect(lateCall.attributes['rpc.grpc.status_code'] === status.DEADLINE_EXCEEDED).toBe(lateCall.status === 'error');

    expect(await service.call(traceparent(failed))).toBe(status.UNAVAILABLE);
    const [call, trip] = callAndTrip(await collector.trace(failed, 2));
    expect(call).toMatchObject({ attributes: { 'rpc.grpc.status_code': status.UNAVAILABLE }, status: 'error' });
    expect(trip).toMatchObject({
      attributes: { 'error.type': expect.stringMatching(/^store_(failed|timeout)$/) },
      status: 'error',
    });

    expect((await service.json(traceparent(json))).status).toBe(503);
    const [request] = callAndTrip(await collector.trace(json, 2));
    expect(request).toMatchObject({ attributes: { 'http.response.status_code': 503 }, status: 'error' });
  });
});
