import { join } from 'node:path';
import { RateLimitRequest } from '../../../src/gen/envoy/service/ratelimit/v3/rls';
import { SHOULD_RATE_LIMIT } from '../../../src/grpc/rate-limit/rate-limit-service';
import { callByHand } from '../../support/call-by-hand';
import { RuleFolder } from '../../support/rule-folder';
import { WeirProcess } from '../../support/weir-process';
import { OtlpReceiver, type ReceivedSpan } from './otlp-receiver';

const RULES = 'domain: shop\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1000 } }]';
const SERVER = 2;
const CLIENT = 3;
const CALLER = 'b7ad6b7169203331';

const ask = RateLimitRequest.encode({
  domain: 'shop',
  descriptors: [
    { entries: [{ key: 'k', value: 'v' }], limit: undefined, hitsAddend: undefined, isNegativeHits: false },
  ],
  hitsAddend: 0,
}).finish();
const ASK_JSON = '{"domain":"shop","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}';

let folder: RuleFolder;
beforeAll(async () => {
  folder = await RuleFolder.with({ 'shop.yaml': RULES });
});
afterAll(() => folder[Symbol.asyncDispose]());

/** The service with traces sent at once to where `url` says. */
const traced = (url: string, env: Record<string, string> = {}) =>
  WeirProcess.start({
    env: {
      ...folder.env,
      DISABLE_STATS: 'true',
      TRACING_ENABLED: 'true',
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_BSP_SCHEDULE_DELAY: '20',
      ...env,
    },
  });

let lastTrace = 0;
const newTraceId = () => (lastTrace += 1).toString(16).padStart(32, 'a');

/** The span of a call and the one within it. */
function pair(spans: readonly ReceivedSpan[]): { readonly call: ReceivedSpan; readonly store: ReceivedSpan } {
  const call = spans.find(({ kind }) => kind === SERVER);
  const store = spans.find(({ kind }) => kind === CLIENT);
  if (call === undefined || store === undefined) throw new Error(`there are ${spans.length} spans`);
  return { call, store };
}

describe('traces', () => {
  it('have a span for the call and one within it for the trip to the store, in the trace of the caller', async () => {
    await using receiver = await OtlpReceiver.http();
    await using weir = await traced(receiver.url, {
      TRACING_SERVICE_NAMESPACE: 'edge',
      OTEL_RESOURCE_ATTRIBUTES: 'zone=a,service.name=loses',
    });
    const traceId = newTraceId();
    const headers = { traceparent: `00-${traceId}-${CALLER}-01`, tracestate: 'vendor=1' };
    expect(await callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, ask, headers)).toBe(0);
    const { call, store } = pair(await receiver.trace(traceId, 2));
    expect(call).toMatchObject({
      name: 'envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
      parentSpanId: CALLER,
      traceState: 'vendor=1',
      attributes: {
        'rpc.system': 'grpc',
        'rpc.service': 'envoy.service.ratelimit.v3.RateLimitService',
        'rpc.method': 'ShouldRateLimit',
        'rpc.grpc.status_code': 0,
      },
      status: 0,
      resource: {
        'service.name': 'RateLimit',
        'service.namespace': 'edge',
        'service.instance.id': expect.stringMatching(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/),
        zone: 'a',
      },
    });
    expect(store).toMatchObject({
      name: 'counter store pipeline',
      parentSpanId: call.spanId,
      attributes: { 'weir.window.operations': 1, 'weir.window.calls': 1 },
      status: 0,
    });
    expect(call.begun <= store.begun && store.begun <= store.ended && store.ended <= call.ended).toBe(true);
    expect(Math.abs(Number(call.begun / 1_000_000n) - Date.now())).toBeLessThan(60_000);
  });

  it('follow the decision of the caller, and the rate where there is none', async () => {
    await using receiver = await OtlpReceiver.http();
    await using weir = await traced(receiver.url, { TRACING_SAMPLING_RATE: '0' });
    const [yes, no, b3] = [newTraceId(), newTraceId(), newTraceId()];
    const call = (headers: Record<string, string>) => callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, ask, headers);
    await call({ traceparent: `00-${no}-${CALLER}-00` });
    await call({});
    await call({ 'x-b3-traceid': b3, 'x-b3-spanid': CALLER, 'x-b3-sampled': '1' });
    await call({ traceparent: `00-${yes}-${CALLER}-01` });
    await receiver.trace(yes, 2);
    expect(pair(await receiver.trace(b3, 2)).call.parentSpanId).toBe(CALLER);
    expect(receiver.spans).toHaveLength(4);
  });

  it('begin here when the caller is in none', async () => {
    await using receiver = await OtlpReceiver.http();
    await using weir = await traced(receiver.url, { TRACING_SERVICE_NAME: 'weir', TRACING_SERVICE_INSTANCE_ID: 'one' });
    await callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, ask);
    await receiver.until('two spans', () => receiver.spans.length === 2);
    const { call, store } = pair(receiver.spans);
    expect(call.parentSpanId).toBe('');
    expect([store.traceId, store.parentSpanId]).toEqual([call.traceId, call.spanId]);
    expect(call.resource).toMatchObject({ 'service.name': 'weir', 'service.instance.id': 'one' });
    expect(call.resource).not.toHaveProperty('service.namespace');
  });

  it('are made for /json too, by the headers of the request', async () => {
    await using receiver = await OtlpReceiver.http();
    await using weir = await traced(receiver.url);
    const [good, bad] = [newTraceId(), newTraceId()];
    await weir.http('/json', { method: 'POST', body: ASK_JSON, headers: { traceparent: `00-${good}-${CALLER}-01` } });
    await weir.http('/json', { method: 'POST', body: '?', headers: { b3: `${bad}-${CALLER}-1` } });
    const { call } = pair(await receiver.trace(good, 2));
    expect(call).toMatchObject({
      name: 'POST /json',
      attributes: { 'http.request.method': 'POST', 'http.route': '/json', 'http.response.status_code': 200 },
    });
    const [refused] = await receiver.trace(bad, 1);
    expect(refused).toMatchObject({ attributes: { 'http.response.status_code': 400 }, status: 0 });
  });

  it('say which calls failed', async () => {
    await using receiver = await OtlpReceiver.http();
    await using weir = await traced(receiver.url, { KVSTORE_PIPELINE_WINDOW: '100ms' });
    const [refused, late] = [newTraceId(), newTraceId()];
    await callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, new Uint8Array(), { b3: `${refused}-${CALLER}-1` });
    await callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, ask, { b3: `${late}-${CALLER}-1`, 'grpc-timeout': '20m' });
    expect((await receiver.trace(refused, 1))[0]).toMatchObject({
      attributes: { 'rpc.grpc.status_code': 3 },
      status: 0,
    });
    expect((await receiver.trace(late, 1))[0]).toMatchObject({ attributes: { 'rpc.grpc.status_code': 4 }, status: 2 });
  });

  it('go over gRPC where TRACING_EXPORTER_PROTOCOL says so', async () => {
    await using receiver = await OtlpReceiver.grpc();
    await using weir = await traced(receiver.url, { TRACING_EXPORTER_PROTOCOL: 'grpc' });
    const traceId = newTraceId();
    await callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, ask, { traceparent: `00-${traceId}-${CALLER}-01` });
    expect(pair(await receiver.trace(traceId, 2)).call.parentSpanId).toBe(CALLER);
  });

  it('that wait when the service ends are sent before', async () => {
    await using receiver = await OtlpReceiver.http();
    await using weir = await traced(receiver.url, { OTEL_BSP_SCHEDULE_DELAY: '600000' });
    await callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, ask);
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    expect(receiver.spans).toHaveLength(2);
  });
});

describe('a collector that is away', () => {
  it('holds up neither calls nor the end, and is told of once; traces come again when it is back', async () => {
    const gone = await OtlpReceiver.http();
    await gone[Symbol.asyncDispose]();
    await using weir = await traced(gone.url, { OTEL_EXPORTER_OTLP_TIMEOUT: '500', OTEL_BSP_EXPORT_TIMEOUT: '500' });
    const call = () => callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, ask);
    for (let calls = 0; calls < 20; calls += 1) expect(await call()).toBe(0);
    await weir.line(/traces are not taken/);
    {
      await using receiver = await OtlpReceiver.http({ port: Number(new URL(gone.url).port) });
      await call();
      await receiver.until('a span', () => receiver.spans.length > 0);
      await weir.line(/traces are taken again/);
    }
    await call();
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    expect(weir.output.match(/traces are taken again/g)).toHaveLength(1);
  });
});

describe('without TRACING_ENABLED', () => {
  it.each([
    ['false', /^loaded 0 files/],
    ['true', /^loaded [1-9]\d+ files/],
  ])('nothing of it is loaded (TRACING_ENABLED=%s)', async (enabled, loaded) => {
    await using receiver = await OtlpReceiver.http();
    const hook = join(__dirname, 'count-loaded.cjs');
    await using weir = await traced(receiver.url, { TRACING_ENABLED: enabled, NODE_OPTIONS: `--require ${hook}` });
    await callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, ask);
    weir.signal('SIGTERM');
    await weir.exited;
    expect(weir.output.split('\n').some((line) => loaded.test(line))).toBe(true);
  });
});
