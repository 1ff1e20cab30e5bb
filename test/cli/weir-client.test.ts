import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, type Server as NetServer, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials, type handleUnaryCall, status } from '@grpc/grpc-js';
import { runClient } from '../../src/cli/client/run-client';
import {
  RateLimitRequest,
  RateLimitResponse,
  RateLimitResponse_Code as Code,
  type RateLimitResponse_DescriptorStatus as DescriptorStatus,
  RateLimitResponse_RateLimit_Unit as Unit,
} from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { writeVerdict } from '../../src/http/json/write-verdict';
import { Code as VerdictCode } from '../../src/limiter/verdict';
import { unitByName } from '../../src/rules/unit';

/** A code that the protocol does not have. */
const NO_SUCH_CODE: Code = JSON.parse('9');

type Handler = handleUnaryCall<RateLimitRequest, RateLimitResponse>;

const folder = mkdtempSync(join(tmpdir(), 'weir-client-'));
const running: (() => void)[] = [];
afterEach(() => {
  for (const stop of running.splice(0)) stop();
});
afterAll(() => rmSync(folder, { recursive: true }));

const NO_LIMIT: DescriptorStatus = {
  code: Code.OK,
  currentLimit: undefined,
  limitRemaining: 0,
  durationUntilReset: undefined,
};

function response(fields: Partial<RateLimitResponse> = {}): RateLimitResponse {
  return {
    overallCode: Code.OK,
    statuses: [NO_LIMIT],
    responseHeadersToAdd: [],
    requestHeadersToAdd: [],
    rawBody: Buffer.alloc(0),
    dynamicMetadata: undefined,
    ...fields,
  };
}

function answering(fields?: Partial<RateLimitResponse>): Handler {
  return (_call, callback) => callback(null, response(fields));
}

/** A rate limit service on a port of the system's choice; its address. */
async function serve(
  handler: Handler,
  { credentials = ServerCredentials.createInsecure(), at = 'localhost:0' } = {},
): Promise<string> {
  const server = new Server();
  server.addService(
    {
      shouldRateLimit: {
        path: '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
        requestStream: false,
        responseStream: false,
        requestSerialize: (message: RateLimitRequest) => Buffer.from(RateLimitRequest.encode(message).finish()),
        requestDeserialize: (bytes: Buffer) => RateLimitRequest.decode(bytes),
        responseSerialize: (message: RateLimitResponse) => Buffer.from(RateLimitResponse.encode(message).finish()),
        responseDeserialize: (bytes: Buffer) => RateLimitResponse.decode(bytes),
      },
    },
    { shouldRateLimit: handler },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(at, credentials, (error, bound) => (error === null ? resolve(bound) : reject(error)));
  });
  running.push(() => server.forceShutdown());
  return at.startsWith('unix:') ? at : `localhost:${port}`;
}

/** A server of bytes; its address. */
async function listen(server: NetServer): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, 'localhost', resolve);
  });
  running.push(() => server.close());
  const address: AddressInfo = Object(server.address());
  return `localhost:${address.port}`;
}

interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(argv: readonly string[], timeoutMs?: number): Promise<Run> {
  let out = '';
  let err = '';
  const code = await runClient(argv, { write: (text) => (out += text) }, { write: (text) => (err += text) }, timeoutMs);
  return { code, out, err };
}

function ask(address: string, ...more: string[]) {
  return run(['-dial_string', address, '-domain', 'shop', '-descriptors', 'user=ann', ...more]);
}

describe('weir-client asks', () => {
  it('what its flags say', async () => {
    const asked: RateLimitRequest[] = [];
    const address = await serve((call, callback) => {
      asked.push(call.request);
      callback(null, response());
    });
    const argv = `--dial_string=${address} -domain shop -descriptors a=b,c=d --descriptors=e=f=g,h= -hits_addend 3`;
    expect(await run(argv.split(' '))).toMatchObject({ code: 0, err: '' });
    const rest = { limit: undefined, hitsAddend: undefined, isNegativeHits: false };
    expect(asked).toEqual([
      {
        domain: 'shop',
        descriptors: [
          {
            entries: [
              { key: 'a', value: 'b' },
              { key: 'c', value: 'd' },
            ],
            ...rest,
          },
          {
            entries: [
              { key: 'e', value: 'f=g' },
              { key: 'h', value: '' },
            ],
            ...rest,
          },
        ],
        hitsAddend: 3,
      },
    ]);
  });

  it('over a Unix socket too', async () => {
    const address = await serve(answering(), { at: `unix:${join(folder, 'weir.sock')}` });
    expect(await ask(address)).toMatchObject({ code: 0, err: '' });
  });
});

describe('weir-client prints', () => {
  const minute = { requestsPerUnit: 10, unit: Unit.MINUTE, name: '' };

  it('the overall code and a line a descriptor', async () => {
    const address = await serve(
      answering({
        overallCode: Code.OVER_LIMIT,
        statuses: [
          { ...NO_LIMIT, currentLimit: minute, limitRemaining: 9, durationUntilReset: { seconds: 30n, nanos: 0 } },
          {
            code: Code.OVER_LIMIT,
            currentLimit: { ...minute, requestsPerUnit: 5, name: 'few' },
            limitRemaining: 0,
            durationUntilReset: { seconds: 1n, nanos: 500_000_000 },
          },
          NO_LIMIT,
          { ...NO_LIMIT, limitRemaining: 4294967295 },
        ],
        responseHeadersToAdd: [{ key: 'RateLimit-Limit', value: '5', rawValue: Buffer.alloc(0) }],
        requestHeadersToAdd: [{ key: 'x-a', value: 'b', rawValue: Buffer.alloc(0) }],
        dynamicMetadata: { domain: 'shop' },
      }),
    );
    const more = ['-descriptors', 'remote_address=10.0.0.1,path=/', '-descriptors', 'c=d', '-descriptors', 'e=f'];
    expect(await ask(address, ...more)).toEqual({
      code: 0,
      err: '',
      out: [
        'OVER_LIMIT',
        '  user=ann                        OK          9 of 10 per minute left, resets in 30s',
        '  remote_address=10.0.0.1,path=/  OVER_LIMIT  0 of 5 per minute left, resets in 1.500s (few)',
        '  c=d                             OK          no limit applies',
        '  e=f                             OK          unlimited',
        'response header RateLimit-Limit: 5',
        'request header x-a: b',
        'metadata {"domain":"shop"}',
        '',
      ].join('\n'),
    });
  });

  it('an answer that it does not expect, too', async () => {
    const currentLimit = { ...minute, unit: 42 };
    const address = await serve(
      answering({ overallCode: Code.UNKNOWN, statuses: [NO_LIMIT, { ...NO_LIMIT, code: NO_SUCH_CODE, currentLimit }] }),
    );
    expect((await ask(address)).out).toBe(
      [
        'UNKNOWN',
        '  user=ann      OK      no limit applies',
        '  descriptor 2  code 9  0 of 10 per unit 42 left',
        '',
      ].join('\n'),
    );
  });

  it('proto3 JSON with -json, every field of it', async () => {
    const address = await serve(
      answering({
        statuses: [
          {
            code: NO_SUCH_CODE,
            currentLimit: minute,
            limitRemaining: 9,
            durationUntilReset: { seconds: 0n, nanos: 0 },
          },
          NO_LIMIT,
        ],
        responseHeadersToAdd: [{ key: 'a', value: '', rawValue: Buffer.from([0xff]) }],
        requestHeadersToAdd: [{ key: 'c', value: 'd', rawValue: Buffer.alloc(0) }],
        rawBody: Buffer.from('body'),
        dynamicMetadata: { list: [1, null, { a: '' }] },
      }),
    );
    const { code, out } = await ask(address, '-json');
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual({
      overallCode: 'OK',
      statuses: [
        {
          code: 9,
          currentLimit: { requestsPerUnit: 10, unit: 'MINUTE' },
          limitRemaining: 9,
          durationUntilReset: '0s',
        },
        { code: 'OK' },
      ],
      responseHeadersToAdd: [{ key: 'a', rawValue: '/w==' }],
      requestHeadersToAdd: [{ key: 'c', value: 'd' }],
      rawBody: 'Ym9keQ==',
      dynamicMetadata: { list: [1, null, { a: '' }] },
    });
  });

  it('with -json what POST /json answers', async () => {
    const address = await serve(
      answering({
        overallCode: Code.OVER_LIMIT,
        statuses: [
          {
            code: Code.OVER_LIMIT,
            currentLimit: { ...minute, name: 'n' },
            limitRemaining: 0,
            durationUntilReset: { seconds: 7n, nanos: 0 },
          },
        ],
        responseHeadersToAdd: [{ key: 'a', value: 'b', rawValue: Buffer.alloc(0) }],
        dynamicMetadata: { domain: 'shop' },
      }),
    );
    const verdict = writeVerdict({
      overallCode: VerdictCode.OVER_LIMIT,
      statuses: [
        {
          code: VerdictCode.OVER_LIMIT,
          currentLimit: { requestsPerUnit: 10, unit: unitByName('MINUTE')!, name: 'n' },
          limitRemaining: 0,
          secondsUntilReset: 7,
        },
      ],
      responseHeaders: [{ key: 'a', value: 'b' }],
      dynamicMetadata: { domain: 'shop' },
    });
    expect(JSON.parse((await ask(address, '-json')).out)).toEqual(JSON.parse(verdict));
  });

  it.each(['-h', '--help'])('its flags for %s', async (flag) => {
    const { code, out, err } = await run([flag]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^ {2}-dial_string address .*\(default localhost:8081\)$/m);
    expect(out).toMatch(/^ {2}-grpc-use-tls /m);
  });
});

describe('the exit code', () => {
  it.each([
    [Code.OK, [], 0],
    [Code.OVER_LIMIT, [], 0],
    [Code.OK, ['-exit_code'], 0],
    [Code.OVER_LIMIT, ['-exit_code'], 2],
    [Code.OVER_LIMIT, ['-exit_code', '-json'], 2],
  ])('of code %i with %j is %i', async (overallCode, flags, code) => {
    const address = await serve(answering({ overallCode }));
    expect((await ask(address, ...flags)).code).toBe(code);
  });
});

describe('what goes wrong is one sentence and exit code 1:', () => {
  const HINT = '\nweir-client -h lists the flags\n';

  it.each([
    [[], 'flag -domain is missing'],
    [['-domain', 'd'], 'flag -descriptors is missing'],
    [
      ['-domain', 'd', '-descriptors', 'a'],
      'invalid value "a" for flag -descriptors: "a" is not of the form name=value',
    ],
    [
      ['-domain', 'd', '-descriptors', 'a=b,'],
      'invalid value "a=b," for flag -descriptors: "" is not of the form name=value',
    ],
    [
      ['-domain', 'd', '-descriptors', 'a=b,=c'],
      'invalid value "a=b,=c" for flag -descriptors: "=c" is not of the form name=value',
    ],
    [['-domain', 'd', '-descriptors', 'a=b', 'c=d'], 'unexpected argument "c=d"'],
    [['-domian', 'd'], 'flag provided but not defined: -domian'],
    [
      ['-domain', 'd', '-descriptors', 'a=b', '-dial_string='],
      'invalid value "" for flag -dial_string: host:port expected',
    ],
    [['-domain', 'd', '-descriptors', 'a=b', '-grpc-cert-file', 'x'], 'flag -grpc-cert-file needs -grpc-use-tls'],
    [
      ['-domain', 'd', '-descriptors', 'a=b', '-grpc-use-tls', '-grpc-cert-file', 'x'],
      'flags -grpc-cert-file and -grpc-key-file need each other',
    ],
    [
      ['-domain', 'd', '-descriptors', 'a=b', '-grpc-use-tls', '-grpc-server-ca-file', '/nonexistent'],
      "cannot read the file of flag -grpc-server-ca-file: ENOENT: no such file or directory, open '/nonexistent'",
    ],
  ])('the command line %j', async (argv, message) => {
    expect(await run(argv)).toEqual({ code: 1, out: '', err: `weir-client: ${message}${HINT}` });
  });

  it('a refusal of the server', async () => {
    const address = await serve((_call, callback) =>
      callback({ code: status.FAILED_PRECONDITION, details: 'no rate limit configuration loaded' }),
    );
    expect(await ask(address)).toEqual({
      code: 1,
      out: '',
      err: `weir-client: ${address} answered FAILED_PRECONDITION: no rate limit configuration loaded\n`,
    });
  });

  it('nobody listening', async () => {
    const server = createServer();
    const address = await listen(server);
    await new Promise((resolve) => {
      server.close(resolve);
    });
    expect(await ask(address)).toEqual({
      code: 1,
      out: '',
      err: `weir-client: cannot connect to ${address}: the connection was refused\n`,
    });
  });

  it('an address with a password, which is not repeated', async () => {
    expect((await ask('http://ann:hush@localhost:1')).err).toBe(
      'weir-client: cannot connect to http://***@localhost:1: there is no host of this name\n',
    );
  });

  it('no such socket', async () => {
    expect((await ask('unix:/nonexistent')).err).toBe(
      'weir-client: cannot connect to unix:/nonexistent: there is no such socket\n',
    );
  });

  it('a server that speaks something else', async () => {
    const address = await listen(
      createServer((socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n').resume()),
    );
    expect((await ask(address)).err).toBe(
      `weir-client: cannot connect to ${address}: the server does not speak gRPC without TLS\n`,
    );
  });

  it('a server that says nothing', async () => {
    const address = await listen(
      createServer((socket) => {
        running.push(() => socket.destroy());
      }),
    );
    expect(await run(['-dial_string', address, '-domain', 'd', '-descriptors', 'a=b'], 200)).toEqual({
      code: 1,
      out: '',
      err: `weir-client: no answer from ${address} within 0.2 s\n`,
    });
  });

  it('a server that takes the question and never answers', async () => {
    const address = await serve(() => {});
    expect((await run(['-dial_string', address, '-domain', 'd', '-descriptors', 'a=b'], 500)).err).toBe(
      `weir-client: no answer from ${address} within 0.5 s\n`,
    );
  });
});

describe('with TLS', () => {
  function openssl(...args: string[]) {
    return execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  }
  function file(name: string) {
    return join(folder, name);
  }
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

  beforeAll(() => {
    openssl('req', '-x509', ...newKey, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=test CA', '-days', '1');
    for (const [name, extension] of [
      ['server', 'subjectAltName=DNS:localhost'],
      ['client', 'extendedKeyUsage=clientAuth'],
    ] as const) {
      const ca = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-addext', extension, '-days', '1'];
      openssl(
        'req',
        '-x509',
        ...newKey,
        '-keyout',
        `${name}.key`,
        '-out',
        `${name}.pem`,
        '-subj',
        `/CN=${name}`,
        ...ca,
      );
    }
  });

  function serverCredentials(mutual: boolean) {
    return ServerCredentials.createSsl(
      readFileSync(file('ca.pem')),
      [{ private_key: readFileSync(file('server.key')), cert_chain: readFileSync(file('server.pem')) }],
      mutual,
    );
  }
  const trust = ['-grpc-use-tls', '-grpc-server-ca-file', file('ca.pem')];

  it('asks a server whose CA it is told', async () => {
    const address = await serve(answering(), { credentials: serverCredentials(false) });
    expect(await ask(address, ...trust)).toMatchObject({ code: 0, err: '' });
  });

  it('shows its certificate to a server that asks for one', async () => {
    const address = await serve(answering(), { credentials: serverCredentials(true) });
    const identity = ['-grpc-cert-file', file('client.pem'), '-grpc-key-file', file('client.key')];
    expect(await ask(address, ...trust, ...identity)).toMatchObject({ code: 0, err: '' });
    expect(await ask(address, ...trust)).toMatchObject({ code: 1, out: '' });
  });

  it('does not ask a server that it has no reason to trust', async () => {
    const address = await serve(answering(), { credentials: serverCredentials(false) });
    const { code, err } = await ask(address, '-grpc-use-tls');
    expect(code).toBe(1);
    expect(err).toMatch(/^weir-client: cannot connect to localhost:\d+: .*certificate.*\n$/);
  });

  it('says that a server has none', async () => {
    const address = await serve(answering());
    expect((await ask(address, ...trust)).err).toBe(
      `weir-client: cannot connect to ${address}: the server does not speak TLS\n`,
    );
  });

  it('says that a file is no certificate', async () => {
    const identity = ['-grpc-cert-file', __filename, '-grpc-key-file', __filename];
    expect(await ask('localhost:1', ...trust, ...identity)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^weir-client: the TLS files cannot be used: .*\n/),
    });
  });
});

describe('the program itself', () => {
  it('prints, says on standard error what is wrong, and ends with the exit code', () => {
    function start(...argv: string[]) {
      const program = join(__dirname, '../../src/cli/weir-client.ts');
      const hook = join(__dirname, '../support/processes/typescript-hook.cjs');
      return spawnSync(process.execPath, ['--require', hook, program, ...argv], { encoding: 'utf8' });
    }
    expect(start('-h')).toMatchObject({ status: 0, stdout: expect.stringContaining('-dial_string'), stderr: '' });
    expect(start('-x')).toMatchObject({
      status: 1,
      stdout: '',
      stderr: 'weir-client: flag provided but not defined: -x\nweir-client -h lists the flags\n',
    });
  });
});
