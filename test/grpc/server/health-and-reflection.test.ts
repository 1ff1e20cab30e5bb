import { Client, type ClientReadableStream, type ServiceError, credentials, status } from '@grpc/grpc-js';
import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import type { AddressInfo } from 'node:net';
import { BehaviorSubject } from 'rxjs';
import { HealthCheckRequest, HealthCheckResponse, HealthListResponse } from '../../../src/gen/grpc/health/v1/health';
import { ServerReflectionRequest, ServerReflectionResponse } from '../../../src/gen/grpc/reflection/v1/reflection';
import { healthService } from '../../../src/grpc/server/health/health-service';
import { reflectionService } from '../../../src/grpc/server/reflection/reflection-service';
import { type GrpcServer, serve } from '../../../src/grpc/server/serve';
import { eventually } from '../http2/raw-client';

jest.setTimeout(30_000);

const SERVING = 1;
const NOT_SERVING = 2;
const SERVICE_UNKNOWN = 3;

const health$ = new BehaviorSubject({ healthy: true, unhealthy: [] as string[] });
let door: GrpcServer;
let client: Client;

beforeAll(async () => {
  const health = healthService(health$);
  door = await serve({
    listen: { host: '127.0.0.1', port: 0 },
    unary: health.unary,
    streaming: new Map([...health.streaming, ...reflectionService(['grpc.health.v1.Health'])]),
  });
  client = new Client(`127.0.0.1:${(door.address as AddressInfo).port}`, credentials.createInsecure());
});
afterAll(async () => {
  client.close();
  await door.close();
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
    client.makeUnaryRequest(`/grpc.health.v1.Health/${method}`, pass, pass, message, (error, answer) =>
      error === null ? resolve(answer!) : reject(error),
    );
  });
}
async function check(service: string): Promise<number> {
  return HealthCheckResponse.decode(await unary('Check', encoded(service))).status;
}

const NAMES = ['', 'ratelimit', 'envoy.service.ratelimit.v3.RateLimitService'];

describe('grpc.health.v1.Health', () => {
  it.each(NAMES)('Check of %j follows the health of the whole', async (name) => {
    expect(await check(name)).toBe(SERVING);
    health$.next({ healthy: false, unhealthy: ['store'] });
    expect(await check(name)).toBe(NOT_SERVING);
  });

  it('Check of another name is NOT_FOUND', async () => {
    await expect(check('nobody')).rejects.toMatchObject({ code: status.NOT_FOUND });
  });

  it('Check of what is no request is INTERNAL', async () => {
    await expect(unary('Check', Buffer.from([0x0a, 0x7f]))).rejects.toMatchObject({ code: status.INTERNAL });
  });

  it('List tells all names', async () => {
    const { statuses } = HealthListResponse.decode(await unary('List', Buffer.alloc(0)));

    expect(statuses).toEqual(Object.fromEntries(NAMES.map((name) => [name, { status: SERVING }])));
  });

  function watch(service: string): { told: number[]; stream: ClientReadableStream<Buffer> } {
    const stream = client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', pass, pass, encoded(service));
    const told: number[] = [];
    stream.on('data', (bytes: Buffer) => told.push(HealthCheckResponse.decode(bytes).status));
    stream.on('error', () => {});
    return { told, stream };
  }

  it('Watch tells the health now and every change of it, and lets go when the caller does', async () => {
    const { told, stream } = watch('');
    await eventually('the first', () => told.length === 1);
    expect(health$.observed).toBe(true);
    health$.next({ healthy: false, unhealthy: ['store'] });
    health$.next({ healthy: false, unhealthy: ['store', 'configuration'] });
    health$.next({ healthy: true, unhealthy: [] });
    await eventually('the changes', () => told.length === 3);
    stream.cancel();
    await eventually('the end', () => !health$.observed);

    expect(told).toEqual([SERVING, NOT_SERVING, SERVING]);
  });

  it('Watch of another name says so, and stays', async () => {
    const { told, stream } = watch('nobody');
    await eventually('the first', () => told.length === 1);

    expect(told).toEqual([SERVICE_UNKNOWN]);
    stream.cancel();
  });

  it('Watch is ended with UNAVAILABLE when the server leaves, after the last change', async () => {
    const own = await serve({ listen: { host: '127.0.0.1', port: 0 }, ...healthService(health$) });
    const caller = new Client(`127.0.0.1:${(own.address as AddressInfo).port}`, credentials.createInsecure());
    const stream = caller.makeServerStreamRequest('/grpc.health.v1.Health/Watch', pass, pass, encoded(''));
    const told: number[] = [];
    stream.on('data', (bytes: Buffer) => told.push(HealthCheckResponse.decode(bytes).status));
    const ended = new Promise<ServiceError>((resolve) => stream.on('error', (error) => resolve(error as ServiceError)));
    await eventually('the first', () => told.length === 1);
    health$.next({ healthy: false, unhealthy: ['termination'] });
    const drained = own.drain(10_000);

    expect((await ended).code).toBe(status.UNAVAILABLE);
    expect(told).toEqual([SERVING, NOT_SERVING]);
    caller.close();
    await drained;
    expect(health$.observed).toBe(false);
  });
});

describe.each(['v1', 'v1alpha'])('grpc.reflection.%s.ServerReflection', (version) => {
  /** Asks all of it over one stream. */
  function ask(
    ...requests: NonNullable<ServerReflectionRequest['messageRequest']>[]
  ): Promise<ServerReflectionResponse[]> {
    return new Promise((resolve, reject) => {
      const stream = client.makeBidiStreamRequest(
        `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
        pass,
        pass,
      );
      const answers: ServerReflectionResponse[] = [];
      stream.on('data', (bytes: Buffer) => answers.push(ServerReflectionResponse.decode(bytes)));
      stream.on('error', reject);
      stream.on('end', () => resolve(answers));
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

  it('lists what is served', async () => {
    const [answer] = await ask({ $case: 'listServices', value: '*' });

    expect(answer!.validHost).toBe('weir');
    expect(answer!.originalRequest?.messageRequest).toEqual({ $case: 'listServices', value: '*' });
    expect(answer!.messageResponse).toEqual({
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
  ])('finds the file that has %s, and all that it imports', async (symbol) => {
    const [answer] = await ask({ $case: 'fileContainingSymbol', value: symbol });
    const files = filesOf(answer!);

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

  it('answers one question after the other on one stream', async () => {
    const answers = await ask(
      { $case: 'fileByFilename', value: 'grpc/health/v1/health.proto' },
      { $case: 'fileByFilename', value: 'nothing.proto' },
      { $case: 'fileContainingSymbol', value: 'no.such.Thing' },
      { $case: 'allExtensionNumbersOfType', value: 'google.protobuf.Duration' },
      { $case: 'fileContainingExtension', value: { containingType: 'google.protobuf.Duration', extensionNumber: 5 } },
      { $case: 'allExtensionNumbersOfType', value: 'no.such.Thing' },
    );

    expect(filesOf(answers[0]!)).toEqual(['grpc/health/v1/health.proto']);
    expect(answers.slice(1).map(({ messageResponse }) => messageResponse)).toEqual([
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
