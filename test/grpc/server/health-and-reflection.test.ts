import { Client, type ClientReadableStream, type ServiceError, credentials, status } from '@grpc/grpc-js';
import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import type { AddressInfo } from 'node:net';
import { BehaviorSubject } from 'rxjs';
import { HealthCheckRequest, HealthCheckResponse, HealthListResponse } from '../../../src/gen/grpc/health/v1/health';
import { ServerReflectionRequest, ServerReflectionResponse } from '../../../src/gen/grpc/reflection/v1/reflection';
import { healthService } from '../../../src/grpc/server/health/health-service';
import { reflectionService } from '../../../src/grpc/server/reflection/reflection-service';
import { type ListeningGrpcServer, serveGrpc } from '../../../src/grpc/server/grpc-server';
import { eventually } from '../http2/raw-client';

const SERVING = 1;
const NOT_SERVING = 2;
const SERVICE_UNKNOWN = 3;

const health$ = new BehaviorSubject({ healthy: true, unhealthy: [] as string[] });
let server: ListeningGrpcServer;
let client: Client;

beforeAll(async () => {
  const health = healthService(health$);
  server = await serveGrpc({
    listen: { host: '127.0.0.1', port: 0 },
    unary: health.unary,
    streaming: new Map([...health.streaming, ...reflectionService(['grpc.health.v1.Health'])]),
  });
  client = new Client(`127.0.0.1:${(server.address as AddressInfo).port}`, credentials.createInsecure());
});
afterAll(async () => {
  client.close();
  await server.close();
});
beforeEach(() => health$.next({ healthy: true, unhealthy: [] }));

function pass(bytes: Buffer): Buffer {
  return bytes;
}
function encoded(service: string): Buffer {
  return Buffer.from(HealthCheckRequest.encode({ service }).finish());
}
function unary(method: string, message: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(`/grpc.health.v1.Health/${method}`, pass, pass, message, (error, response) =>
      error === null ? resolve(response!) : reject(error),
    );
  });
}
async function check(service: string): Promise<number> {
  return HealthCheckResponse.decode(await unary('Check', encoded(service))).status;
}

const NAMES = ['', 'ratelimit', 'envoy.service.ratelimit.v3.RateLimitService'];

describe('grpc.health.v1.Health', () => {
  it.each(NAMES)('Check of %j returns the health of the service', async (name) => {
    expect(await check(name)).toBe(SERVING);
    health$.next({ healthy: false, unhealthy: ['store'] });
    expect(await check(name)).toBe(NOT_SERVING);
  });

  it('Check of an unknown name fails with NOT_FOUND', async () => {
    await expect(check('unknown')).rejects.toMatchObject({ code: status.NOT_FOUND });
  });

  it.each(['Check', 'Watch'])('%s fails with RESOURCE_EXHAUSTED when the message is too large', async (method) => {
    await expect(unary(method, encoded('x'.repeat(1_024)))).rejects.toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
      details: 'a HealthCheckRequest may have at most 1024 bytes',
    });
  });

  it('Check fails with INTERNAL when the message is not a HealthCheckRequest', async () => {
    await expect(unary('Check', Buffer.from([0x0a, 0x7f]))).rejects.toMatchObject({ code: status.INTERNAL });
  });

  it('List returns the status of every name', async () => {
    const { statuses } = HealthListResponse.decode(await unary('List', Buffer.alloc(0)));

    expect(statuses).toEqual(Object.fromEntries(NAMES.map((name) => [name, { status: SERVING }])));
  });

  function watch(service: string): { statuses: number[]; stream: ClientReadableStream<Buffer> } {
    const stream = client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', pass, pass, encoded(service));
    const statuses: number[] = [];
    stream.on('data', (bytes: Buffer) => statuses.push(HealthCheckResponse.decode(bytes).status));
    stream.on('error', () => {});
    return { statuses, stream };
  }

  it('Watch sends the current health and every change, and unsubscribes when the caller cancels', async () => {
    const { statuses, stream } = watch('');
    await eventually('the first status', () => statuses.length === 1);
    expect(health$.observed).toBe(true);
    health$.next({ healthy: false, unhealthy: ['store'] });
    health$.next({ healthy: false, unhealthy: ['store', 'configuration'] });
    health$.next({ healthy: true, unhealthy: [] });
    await eventually('the changes', () => statuses.length === 3);
    stream.cancel();
    await eventually('the end of the subscription', () => !health$.observed);

    expect(statuses).toEqual([SERVING, NOT_SERVING, SERVING]);
  });

  it('Watch of an unknown name sends SERVICE_UNKNOWN and stays open', async () => {
    const { statuses, stream } = watch('unknown');
    await eventually('the first status', () => statuses.length === 1);

    expect(statuses).toEqual([SERVICE_UNKNOWN]);
    stream.cancel();
  });

  it('Watch sends the last change and ends with UNAVAILABLE when the server shuts down', async () => {
    const own = await serveGrpc({ listen: { host: '127.0.0.1', port: 0 }, ...healthService(health$) });
    const caller = new Client(`127.0.0.1:${(own.address as AddressInfo).port}`, credentials.createInsecure());
    const stream = caller.makeServerStreamRequest('/grpc.health.v1.Health/Watch', pass, pass, encoded(''));
    const statuses: number[] = [];
    stream.on('data', (bytes: Buffer) => statuses.push(HealthCheckResponse.decode(bytes).status));
    const ended = new Promise<ServiceError>((resolve) => stream.on('error', (error) => resolve(error as ServiceError)));
    await eventually('the first status', () => statuses.length === 1);
    health$.next({ healthy: false, unhealthy: ['termination'] });
    const drained = own.drain(10_000);

    expect((await ended).code).toBe(status.UNAVAILABLE);
    expect(statuses).toEqual([SERVING, NOT_SERVING]);
    caller.close();
    await drained;
    expect(health$.observed).toBe(false);
  });
});

describe.each(['v1', 'v1alpha'])('grpc.reflection.%s.ServerReflection', (version) => {
  /** Sends all requests on one stream. */
  function reflect(
    ...requests: NonNullable<ServerReflectionRequest['messageRequest']>[]
  ): Promise<ServerReflectionResponse[]> {
    return new Promise((resolve, reject) => {
      const stream = client.makeBidiStreamRequest(
        `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
        pass,
        pass,
      );
      const responses: ServerReflectionResponse[] = [];
      stream.on('data', (bytes: Buffer) => responses.push(ServerReflectionResponse.decode(bytes)));
      stream.on('error', reject);
      stream.on('end', () => resolve(responses));
      for (const messageRequest of requests) {
        stream.write(Buffer.from(ServerReflectionRequest.encode({ host: 'weir', messageRequest }).finish()));
      }
      stream.end();
    });
  }
  function filesOf({ messageResponse }: ServerReflectionResponse): string[] {
    return messageResponse?.$case === 'fileDescriptorResponse'
      ? messageResponse.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name)
      : [];
  }

  it('rejects a request that is longer than its answers could be kept', async () => {
    const value = 'x'.repeat(64 * 1_024);
    await expect(reflect({ $case: 'fileByFilename', value })).rejects.toMatchObject({ code: 8 });
  });

  it('lists the services of the server', async () => {
    const [response] = await reflect({ $case: 'listServices', value: '*' });

    expect(response!.validHost).toBe('weir');
    expect(response!.originalRequest?.messageRequest).toEqual({ $case: 'listServices', value: '*' });
    expect(response!.messageResponse).toEqual({
      $case: 'listServicesResponse',
      value: {
        service: [
          { name: 'grpc.health.v1.Health' },
          { name: 'grpc.reflection.v1.ServerReflection' },
          { name: 'grpc.reflection.v1alpha.ServerReflection' },
        ],
      },
    });
  });

  it.each([
    'envoy.service.ratelimit.v3.RateLimitService',
    'envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit',
    'envoy.service.ratelimit.v3.RateLimitRequest',
    'envoy.service.ratelimit.v3.RateLimitRequest.domain',
    'envoy.service.ratelimit.v3.RateLimitResponse.Code',
    'envoy.service.ratelimit.v3.RateLimitResponse.DescriptorStatus',
  ])('returns the file that contains %s and all its imports', async (symbol) => {
    const [response] = await reflect({ $case: 'fileContainingSymbol', value: symbol });
    const files = filesOf(response!);

    expect(files[0]).toBe('envoy/service/ratelimit/v3/rls.proto');
    expect(files.slice(1).toSorted()).toEqual([
      'envoy/config/core/v3/base.proto',
      'envoy/extensions/common/ratelimit/v3/ratelimit.proto',
      'envoy/type/v3/ratelimit_unit.proto',
      'google/protobuf/duration.proto',
      'google/protobuf/struct.proto',
      'google/protobuf/wrappers.proto',
    ]);
  });

  it('answers several requests on one stream in order', async () => {
    const responses = await reflect(
      { $case: 'fileByFilename', value: 'grpc/health/v1/health.proto' },
      { $case: 'fileByFilename', value: 'nothing.proto' },
      { $case: 'fileContainingSymbol', value: 'no.such.Thing' },
      { $case: 'allExtensionNumbersOfType', value: 'google.protobuf.Duration' },
      { $case: 'fileContainingExtension', value: { containingType: 'google.protobuf.Duration', extensionNumber: 5 } },
      { $case: 'allExtensionNumbersOfType', value: 'no.such.Thing' },
    );

    expect(filesOf(responses[0]!)).toEqual(['grpc/health/v1/health.proto']);
    expect(responses.slice(1).map(({ messageResponse }) => messageResponse)).toEqual([
      { $case: 'errorResponse', value: { errorCode: status.NOT_FOUND, errorMessage: 'not found' } },
      { $case: 'errorResponse', value: { errorCode: status.NOT_FOUND, errorMessage: 'not found' } },
      {
        $case: 'allExtensionNumbersResponse',
        value: { baseTypeName: 'google.protobuf.Duration', extensionNumber: [] },
      },
      { $case: 'errorResponse', value: { errorCode: status.NOT_FOUND, errorMessage: 'not found' } },
      { $case: 'errorResponse', value: { errorCode: status.NOT_FOUND, errorMessage: 'not found' } },
    ]);
  });
});
