import { Client, type ClientReadableStream, type ServiceError, credentials, status } from '@grpc/grpc-js';
import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { BehaviorSubject, defer } from 'rxjs';
import { HealthCheckRequest, HealthCheckResponse, HealthListResponse } from '../../../src/gen/grpc/health/v1/health';
import { ServerReflectionRequest, ServerReflectionResponse } from '../../../src/gen/grpc/reflection/v1/reflection';
import { healthService } from '../../../src/grpc/server/health-service';
import { reflectionService } from '../../../src/grpc/server/reflection-service';
import { until } from '../../support/waiting/until';
import { type TestServer, pass, startServer, unaryCall } from './servers';

const [SERVING, NOT_SERVING, SERVICE_UNKNOWN] = [1, 2, 3];
const NAMES = ['', 'ratelimit', 'envoy.service.ratelimit.v3.RateLimitService'];
const health$ = new BehaviorSubject({ healthy: true, unhealthy: [] as string[] });
let server: TestServer;
let client: Client;
/** Closed after the test, also after one that fails. */
const opened: { close(): unknown }[] = [];

beforeEach(async () => {
  health$.next({ healthy: true, unhealthy: [] });
  const { unary, streaming } = healthService(health$);
  const reflection = reflectionService(['grpc.health.v1.Health']);
  server = await startServer({ unary, streaming: new Map([...streaming, ...reflection]) });
  client = new Client(`127.0.0.1:${server.address.port}`, credentials.createInsecure());
});
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
  client.close();
  await server.close();
});

describe('grpc.health.v1.Health', () => {
  function encoded(service: string): Buffer {
    return Buffer.from(HealthCheckRequest.encode({ service }).finish());
  }
  function call(method: string, message: Buffer): Promise<Buffer> {
    return unaryCall(client, `/grpc.health.v1.Health/${method}`, message);
  }
  async function check(service: string): Promise<number> {
    return HealthCheckResponse.decode(await call('Check', encoded(service))).status;
  }
  function watch(
    service: string,
    caller = client,
  ): { statuses: number[]; stream: ClientReadableStream<Buffer>; error?: ServiceError } {
    const stream = caller.makeServerStreamRequest('/grpc.health.v1.Health/Watch', pass, pass, encoded(service));
    const watched: ReturnType<typeof watch> = { statuses: [], stream };
    stream.on('data', (bytes: Buffer) => watched.statuses.push(HealthCheckResponse.decode(bytes).status));
    stream.on('error', (error: ServiceError) => (watched.error = error));
    return watched;
  }

  it('Check and List return the health of the service by each of its names', async () => {
    for (const name of NAMES) expect([name, await check(name)]).toEqual([name, SERVING]);
    health$.next({ healthy: false, unhealthy: ['store'] });
    for (const name of NAMES) expect([name, await check(name)]).toEqual([name, NOT_SERVING]);
    await expect(check('unknown')).rejects.toMatchObject({ code: status.NOT_FOUND });
    const { statuses } = HealthListResponse.decode(await call('List', Buffer.alloc(0)));
    expect(statuses).toEqual(Object.fromEntries(NAMES.map((name) => [name, { status: NOT_SERVING }])));
  });

  it('Check and Watch reject a message that is too large or not a HealthCheckRequest', async () => {
    const tooLarge = { code: status.RESOURCE_EXHAUSTED, details: 'a HealthCheckRequest may have at most 1024 bytes' };
    for (const method of ['Check', 'Watch']) {
      await expect(call(method, encoded('x'.repeat(1_024)))).rejects.toMatchObject(tooLarge);
      await expect(call(method, Buffer.from([0x0a, 0x7f]))).rejects.toMatchObject({ code: status.INTERNAL });
    }
  });

  it('Watch sends the current health and every change, and unsubscribes when the caller cancels', async () => {
    const { statuses, stream } = watch('');
    await until('the first status has arrived', () => statuses.length === 1);
    expect(health$.observed).toBe(true);
    health$.next({ healthy: false, unhealthy: ['store'] });
    health$.next({ healthy: false, unhealthy: ['store', 'configuration'] });
    health$.next({ healthy: true, unhealthy: [] });
    await until('the changes have arrived', () => statuses.length === 3);
    stream.cancel();
    await until('the subscription has ended', () => !health$.observed);

    expect(statuses).toEqual([SERVING, NOT_SERVING, SERVING]);
  });

  it('rejects a Watch over the limit of its connection or of the process until another has ended', async () => {
    const limits = { maxStreamingCallsPerConnection: 2, maxStreamingCalls: 3 };
    const limited = await startServer({ ...healthService(health$), limits });
    const target = `127.0.0.1:${limited.address.port}`;
    const [first, second] = Array.from({ length: 2 }, () => {
      return new Client(target, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
    });
    opened.push(first!, second!, limited);
    const served: ReturnType<typeof watch>[] = [];
    async function expectServed(caller: Client): Promise<void> {
      const watched = watch('', caller);
      await until('it is served', () => watched.statuses.length === 1);
      served.push(watched);
    }
    async function expectRejected(caller: Client): Promise<void> {
      const watched = watch('', caller);
      await until('it is rejected', () => watched.error !== undefined);
      expect(watched.error).toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    }
    for (const caller of [first!, first!, second!]) await expectServed(caller);
    await expectRejected(second!);
    served[2]!.stream.cancel();
    await until('its end is noticed', () => limited.grpcServer.openStreams === 2);
    await expectRejected(first!);
    await expectServed(second!);

    expect(limited.seen.rejected).toEqual(['streaming_calls', 'streaming_calls']);
  });

  it('tells more calls than in one turn of a change, with one subscription for all', async () => {
    let subscriptions = 0;
    const changes$ = defer(() => {
      subscriptions += 1;
      return health$;
    });
    const counted$ = Object.assign(changes$, { value: health$.value });
    const limits = { maxStreamingCallsPerConnection: 600 };
    const crowded = await startServer({ ...healthService(counted$), limits });
    const own = new Client(`127.0.0.1:${crowded.address.port}`, credentials.createInsecure());
    opened.push(own, crowded);
    const watched = Array.from({ length: 600 }, () => watch('', own));
    await until('all have a status', () => watched.every(({ statuses }) => statuses.length === 1));
    health$.next({ healthy: false, unhealthy: ['store'] });
    await until('all know the change', () => watched.every(({ statuses }) => statuses.length === 2));

    expect(new Set(watched.map(({ statuses }) => String(statuses)))).toEqual(new Set([`${SERVING},${NOT_SERVING}`]));
    expect(subscriptions).toBe(1);
  });

  it('Watch stays open for an unknown name, and ends with UNAVAILABLE after the last change at the end', async () => {
    const [known, unknown] = [watch(''), watch('unknown')];
    await until('both have a status', () => known.statuses.length === 1 && unknown.statuses.length === 1);
    health$.next({ healthy: false, unhealthy: ['termination'] });
    const drained = server.grpcServer.drain(600_000);
    await until('both have ended', () => known.error !== undefined && unknown.error !== undefined);

    expect([known.error?.code, unknown.error?.code]).toEqual([status.UNAVAILABLE, status.UNAVAILABLE]);
    expect([known.statuses, unknown.statuses]).toEqual([[SERVING, NOT_SERVING], [SERVICE_UNKNOWN]]);
    client.close();
    await drained;
    expect(health$.observed).toBe(false);
  });
});

describe.each(['v1', 'v1alpha'])('grpc.reflection.%s.ServerReflection', (version) => {
  type Answer = NonNullable<ServerReflectionResponse['messageResponse']>;

  /** Sends all requests on one stream. */
  function reflect(...requests: NonNullable<ServerReflectionRequest['messageRequest']>[]): Promise<Answer[]> {
    return new Promise((resolve, reject) => {
      const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
      const stream = client.makeBidiStreamRequest(path, pass, pass);
      const answers: Answer[] = [];
      stream.on('data', (bytes: Buffer) => {
        const { validHost, originalRequest, messageResponse } = ServerReflectionResponse.decode(bytes);
        expect([validHost, originalRequest?.messageRequest]).toEqual(['weir', requests[answers.length]]);
        answers.push(messageResponse!);
      });
      stream.on('error', reject);
      stream.on('end', () => resolve(answers));
      for (const messageRequest of requests) {
        stream.write(Buffer.from(ServerReflectionRequest.encode({ host: 'weir', messageRequest }).finish()));
      }
      stream.end();
    });
  }
  function filesOf(answer: Answer): string[] {
    return answer.$case === 'fileDescriptorResponse'
      ? answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name)
      : [];
  }

  it('rejects a request that is longer than its answers could be kept', async () => {
    const value = 'x'.repeat(64 * 1_024);
    await expect(reflect({ $case: 'fileByFilename', value })).rejects.toMatchObject({ code: 8 });
  });

  it('answers a burst of requests on a connection, ends streams with more of them, and answers again later', async () => {
    const list = { $case: 'listServices' as const, value: '' };
    expect(await reflect(...Array.from({ length: 60 }, () => list))).toHaveLength(60);
    await expect(reflect(...Array.from({ length: 1_000 }, () => list))).rejects.toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
      details: 'too many messages of streaming calls on this connection',
    });
    expect(server.seen.rejected).toEqual(['streaming_messages']);
    const [another] = await until('a request is answered again', () => reflect(list).catch(() => undefined));
    expect(another).toMatchObject({ $case: 'listServicesResponse' });
  });

  it('returns the file that contains a symbol and all its imports', async () => {
    const service = 'RateLimitService RateLimitService.ShouldRateLimit RateLimitRequest RateLimitRequest.domain';
    const symbols = `${service} RateLimitResponse.Code RateLimitResponse.DescriptorStatus`.split(' ');
    const values = symbols.map((name) => `envoy.service.ratelimit.v3.${name}`);
    const answers = await reflect(...values.map((value) => ({ $case: 'fileContainingSymbol' as const, value })));
    const imports = [
      'envoy/config/core/v3/base.proto',
      'envoy/extensions/common/ratelimit/v3/ratelimit.proto',
      'envoy/type/v3/ratelimit_unit.proto',
      ...['duration', 'struct', 'wrappers'].map((name) => `google/protobuf/${name}.proto`),
    ];
    for (const answer of answers) {
      const [first, ...others] = filesOf(answer);
      expect([first, others.toSorted()]).toEqual(['envoy/service/ratelimit/v3/rls.proto', imports]);
    }
    expect(answers).toHaveLength(symbols.length);
  });

  it('lists the services of the server, and answers several requests on one stream in order', async () => {
    const duration = 'google.protobuf.Duration';
    const [services, file, ...others] = await reflect(
      { $case: 'listServices', value: '*' },
      { $case: 'fileByFilename', value: 'grpc/health/v1/health.proto' },
      { $case: 'fileByFilename', value: 'nothing.proto' },
      { $case: 'fileContainingSymbol', value: 'no.such.Thing' },
      { $case: 'fileContainingExtension', value: { containingType: duration, extensionNumber: 5 } },
      { $case: 'allExtensionNumbersOfType', value: 'no.such.Thing' },
      { $case: 'allExtensionNumbersOfType', value: duration },
    );

    const names = ['health.v1.Health', 'reflection.v1.ServerReflection', 'reflection.v1alpha.ServerReflection'];
    const service = names.map((name) => ({ name: `grpc.${name}` }));
    expect(services).toEqual({ $case: 'listServicesResponse', value: { service } });
    expect(filesOf(file!)).toEqual(['grpc/health/v1/health.proto']);
    const extensions = { $case: 'allExtensionNumbersResponse', value: { baseTypeName: duration, extensionNumber: [] } };
    const value = { errorCode: status.NOT_FOUND, errorMessage: 'not found' };
    expect(others).toEqual([...Array.from({ length: 4 }, () => ({ $case: 'errorResponse', value })), extensions]);
  });
});
