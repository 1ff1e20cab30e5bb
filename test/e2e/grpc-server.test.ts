import { Client, type ChannelCredentials, credentials } from '@grpc/grpc-js';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { once } from 'node:events';
import { firstValueFrom, Subject, filter, take, toArray } from 'rxjs';
import {
  HealthCheckRequest,
  HealthCheckResponse,
  HealthCheckResponse_ServingStatus as Status,
} from '../../src/gen/grpc/health/v1/health';
import { ServerReflectionRequest, ServerReflectionResponse } from '../../src/gen/grpc/reflection/v1/reflection';
import { type Authority, newAuthority } from '../support/data/certificates';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 1000}}]\n',
};
let rules: RuleFolder;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
});
afterAll(() => rules[Symbol.asyncDispose]());

function bytes(value: Buffer): Buffer {
  return value;
}

function checkHealth(client: Client, service: string): Promise<Status> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      '/grpc.health.v1.Health/Check',
      bytes,
      (message: Buffer) => HealthCheckResponse.decode(message),
      Buffer.from(HealthCheckRequest.encode({ service }).finish()),
      (error, response) => (error === null && response ? resolve(response.status) : reject(error ?? new Error('none'))),
    );
  });
}

describe('the gRPC listener', () => {
  it('reports the health of the service, and NOT_SERVING to a Watch at its end', async () => {
    await using weir = await WeirProcess.start({ env: rules.env });
    const client = new Client(weir.grpcAddress, credentials.createInsecure());
    for (const name of ['', 'ratelimit', 'envoy.service.ratelimit.v3.RateLimitService']) {
      expect(await checkHealth(client, name)).toBe(Status.SERVING);
    }
    await expect(checkHealth(client, 'other')).rejects.toMatchObject({ code: 5 });

    const statuses$ = new Subject<Status>();
    const watch = client.makeServerStreamRequest(
      '/grpc.health.v1.Health/Watch',
      bytes,
      (message: Buffer) => HealthCheckResponse.decode(message),
      Buffer.from(HealthCheckRequest.encode({ service: '' }).finish()),
    );
    watch.on('data', ({ status }: HealthCheckResponse) => statuses$.next(status));
    const ended = new Promise((resolve) => watch.once('error', resolve));
    const watched = firstValueFrom(statuses$.pipe(take(2), toArray()));
    await firstValueFrom(statuses$.pipe(filter((status) => status === Status.SERVING)));
    weir.signal('SIGTERM');
    expect(await watched).toEqual([Status.SERVING, Status.NOT_SERVING]);
    expect(await ended).toMatchObject({ code: 14 });
    expect(await weir.exited).toBe(0);
    client.close();
  });

  it('lists its services by reflection, for tools without .proto files', async () => {
    await using weir = await WeirProcess.start({ env: rules.env });
    const client = new Client(weir.grpcAddress, credentials.createInsecure());
    const call = client.makeBidiStreamRequest(
      '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      bytes,
      (message: Buffer) => ServerReflectionResponse.decode(message),
    );
    const answer = new Promise<ServerReflectionResponse>((resolve) => call.once('data', resolve));
    call.write(
      Buffer.from(
        ServerReflectionRequest.encode({ host: '', messageRequest: { $case: 'listServices', value: '*' } }).finish(),
      ),
    );
    const { messageResponse } = await answer;
    const names =
      messageResponse?.$case === 'listServicesResponse' ? messageResponse.value.service.map(({ name }) => name) : [];
    expect(names).toEqual([
      'envoy.service.ratelimit.v3.RateLimitService',
      'grpc.health.v1.Health',
      'grpc.reflection.v1.ServerReflection',
      'grpc.reflection.v1alpha.ServerReflection',
    ]);
    const ended = new Promise((resolve) => call.once('status', resolve));
    call.end();
    expect(await ended).toMatchObject({ code: 0 });
    client.close();
  });
});

describe('the gRPC listener with GRPC_UDS', () => {
  it('listens on a Unix socket, replaces one left behind by a dead process, and fails when another process listens on it', async () => {
    const own = await mkdtemp(join(tmpdir(), 'weir-uds-'));
    const env = { ...rules.env, GRPC_UDS: join(own, 'grpc.sock') };
    async function call() {
      using client = new RateLimitClient(`unix:${env.GRPC_UDS}`);
      return (await client.shouldRateLimit('shop', ['user=x'])).statuses[0]?.limitRemaining;
    }
    {
      await using first = await WeirProcess.start({ env });
      expect(await call()).toBe(999);
      await using second = await WeirProcess.start({ env, awaitServing: false });
      expect(await second.exited).toBe(1);
      expect(second.output).toContain(`cannot listen on ${env.GRPC_UDS}: another process is already listening there`);
      first.signal('SIGKILL');
      await first.exited;
    }
    await using third = await WeirProcess.start({ env });
    expect(await call()).toBe(999);
    third.signal('SIGTERM');
    expect(await third.exited).toBe(0);
    await rm(own, { recursive: true });
  });
});

describe('the gRPC listener with TLS', () => {
  let authority: Authority;
  let own: string;
  beforeAll(() => {
    authority = newAuthority();
  });
  afterAll(() => authority.dispose());
  beforeEach(async () => {
    own = await mkdtemp(join(tmpdir(), 'weir-tls-'));
    await writeFile(join(own, 'ca.crt'), authority.ca);
  });
  afterEach(() => rm(own, { recursive: true, force: true }));

  async function put(names: readonly string[]) {
    const { cert, key } = authority.issue(...names);
    // At once: the service rejects a certificate and a key that do not belong together.
    writeFileSync(join(own, 'tls.crt'), cert);
    writeFileSync(join(own, 'tls.key'), key);
  }
  function env(more: Record<string, string> = {}) {
    return {
      ...rules.env,
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: join(own, 'tls.crt'),
      GRPC_SERVER_TLS_KEY: join(own, 'tls.key'),
      ...more,
    };
  }
  async function call(weir: WeirProcess, channel: ChannelCredentials) {
    using client = new RateLimitClient(`localhost:${weir.ports.grpc}`, channel);
    return (await client.shouldRateLimit('shop', ['user=x'])).overallCode;
  }
  /** The DNS names in the server's certificate on a new connection. */
  async function certificateNames(weir: WeirProcess) {
    const socket = connect({
      host: '127.0.0.1',
      port: weir.ports.grpc,
      ca: authority.ca,
      servername: 'localhost',
      ALPNProtocols: ['h2'],
    });
    await once(socket, 'secureConnect');
    const names = socket.getPeerCertificate().subjectaltname;
    socket.destroy();
    return names;
  }

  it('uses a renewed certificate without a restart, and keeps the current one when the new one is invalid', async () => {
    await put(['localhost']);
    await using weir = await WeirProcess.start({ env: env() });
    const trusting = credentials.createSsl(Buffer.from(authority.ca));
    expect(await call(weir, trusting)).toBe(1);

    await put(['localhost', 'renewed']);
    await weir.until('the new certificate', async () => (await certificateNames(weir))?.includes('renewed'));

    await writeFile(join(own, 'tls.key'), 'broken');
    await weir.line(/keeping the current ones: .*tls\.key is not an unencrypted private key/);
    expect(await call(weir, trusting)).toBe(1);
    expect(weir.output.match(/keeping the current ones/g)).toHaveLength(1);

    await put(['localhost', 'repaired']);
    expect(await weir.line(/certificates of the gRPC listener are valid again/)).toContain('level=error');
    await weir.until('the new certificate', async () => (await certificateNames(weir))?.includes('repaired'));
  });

  it('requires a client certificate of the CA with the configured name', async () => {
    await put(['localhost']);
    await using weir = await WeirProcess.start({
      env: env({ GRPC_CLIENT_TLS_CACERT: join(own, 'ca.crt'), GRPC_CLIENT_TLS_SAN: 'proxy' }),
    });
    function withCertificate(pair?: { cert: string; key: string }) {
      return credentials.createSsl(
        Buffer.from(authority.ca),
        pair && Buffer.from(pair.key),
        pair && Buffer.from(pair.cert),
      );
    }
    expect(await call(weir, withCertificate(authority.issue('proxy')))).toBe(1);
    await expect(call(weir, withCertificate(authority.issue('other')))).rejects.toMatchObject({ code: 14 });
    await expect(call(weir, withCertificate())).rejects.toMatchObject({ code: 14 });
    const otherAuthority = newAuthority();
    await expect(call(weir, withCertificate(otherAuthority.issue('proxy')))).rejects.toMatchObject({ code: 14 });
    otherAuthority.dispose();
  });

  it('does not start with an invalid certificate', async () => {
    await put(['localhost']);
    await writeFile(join(own, 'tls.crt'), 'broken');
    await using weir = await WeirProcess.start({ env: env(), awaitServing: false });
    expect(await weir.exited).toBe(1);
    expect(weir.output).toMatch(/tls\.crt is not a certificate in PEM format/);
  });
});

it('two instances that are restarted one after the other under load fail no call of a client that uses both', async () => {
  const [one, other] = await Promise.all([
    WeirProcess.start({ env: rules.env }),
    WeirProcess.start({ env: rules.env }),
  ]);
  using client = new RateLimitClient(
    `ipv4:${one.grpcAddress},${other.grpcAddress}`,
    credentials.createInsecure(),
    // Reconnects soon after an instance is back.
    {
      'grpc.service_config': ROUND_ROBIN,
      'grpc.initial_reconnect_backoff_ms': 50,
      'grpc.max_reconnect_backoff_ms': 200,
    },
  );
  let isRunning = true;
  let answered = 0;
  const failures: unknown[] = [];
  const callers = Array.from({ length: 32 }, async (_, number) => {
    while (isRunning) {
      try {
        await client.shouldRateLimit('shop', [`user=${number}`]);
        answered += 1;
      } catch (error) {
        failures.push(error);
      }
    }
  });
  /** Ends an instance, starts another one on the same port, and waits until it has received calls. */
  async function restart(weir: WeirProcess) {
    weir.signal('SIGTERM');
    expect(await weir.exited).toBe(0);
    const next = await WeirProcess.start({ env: { ...rules.env, GRPC_PORT: String(weir.ports.grpc) } });
    await next.until('calls to come back', async () => {
      const calls = (await next.statistics()).get('ratelimit_server.ShouldRateLimit.total_requests') ?? 0;
      return calls > 0;
    });
    return next;
  }
  const nextOne = await restart(one);
  const nextOther = await restart(other);
  isRunning = false;
  await Promise.all(callers);
  for (const weir of [one, other, nextOne, nextOther]) await weir[Symbol.asyncDispose]();
  expect(failures).toEqual([]);
  expect(answered).toBeGreaterThan(100);
});

const ROUND_ROBIN = JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] });
