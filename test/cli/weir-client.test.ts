import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, type Server as NetServer, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials, type handleUnaryCall, status } from '@grpc/grpc-js';
import packageFile from '../../package.json';
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

/** A code that the protocol does not define. */
const NO_SUCH_CODE: Code = JSON.parse('9');

type Handler = handleUnaryCall<RateLimitRequest, RateLimitResponse>;

const folder = mkdtempSync(join(tmpdir(), 'weir-client-'));
const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const stop of cleanups.splice(0)) stop();
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

/** Starts a rate limit service on a free port and returns its address. */
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
  cleanups.push(() => server.forceShutdown());
  return at.startsWith('unix:') ? at : `localhost:${port}`;
}

/** Starts a TCP server on a free port and returns its address. */
async function listen(server: NetServer): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, 'localhost', resolve);
  });
  cleanups.push(() => server.close());
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
  const stdout = { write: (text: string) => (out += text) };
  const stderr = { write: (text: string) => (err += text) };
  const code = await runClient(argv, { stdout, stderr, timeoutMs });
  return { code, out, err };
}

function call(address: string, ...more: string[]) {
  return run(['-dial_string', address, '-domain', 'shop', '-descriptors', 'user=ann', ...more]);
}

describe('weir-client sends', () => {
  it('sends the request that its flags describe', async () => {
    const requests: RateLimitRequest[] = [];
    const address = await serve((received, callback) => {
      requests.push(received.request);
      callback(null, response());
    });
    const argv = `--dial_string=${address} -domain shop -descriptors a=b,c=d --descriptors=e=f=g,h= -hits_addend 3`;
    expect(await run(argv.split(' '))).toMatchObject({ code: 0, err: '' });
    const rest = { limit: undefined, hitsAddend: undefined, isNegativeHits: false };
    expect(requests).toEqual([
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

  it('connects to a Unix socket', async () => {
    const address = await serve(answering(), { at: `unix:${join(folder, 'weir.sock')}` });
    expect(await call(address)).toMatchObject({ code: 0, err: '' });
  });
});

describe('the output of weir-client', () => {
  const minute = { requestsPerUnit: 10, unit: Unit.MINUTE, name: '' };

  it('contains the overall code and one line per descriptor', async () => {
    const address = await serve(
      answering({
        overallCode: Code.OVER_LIMIT,
        statuses: [
          { ...NO_LIMIT, currentLimit: minute, limitRemaining: 9, durationUntilReset: { seconds: 15_023n, nanos: 0 } },
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
    expect(await call(address, ...more)).toEqual({
      code: 0,
      err: '',
      out: [
        'OVER_LIMIT',
        '  user=ann                        OK          9 of 10 per minute left, resets in 4h10m23s',
        '  remote_address=10.0.0.1,path=/  OVER_LIMIT  0 of 5 per minute left, resets in 1.5s (few)',
        '  c=d                             OK          no limit applies',
        '  e=f                             OK          unlimited',
        'response header RateLimit-Limit: 5',
        'request header x-a: b',
        'metadata {"domain":"shop"}',
        '',
      ].join('\n'),
    });
  });

  it('contains unknown codes and units and extra descriptors', async () => {
    const currentLimit = { ...minute, unit: 42 };
    const address = await serve(
      answering({ overallCode: Code.UNKNOWN, statuses: [NO_LIMIT, { ...NO_LIMIT, code: NO_SUCH_CODE, currentLimit }] }),
    );
    expect((await call(address)).out).toBe(
      [
        'UNKNOWN',
        '  user=ann      OK      no limit applies',
        '  descriptor 2  code 9  0 of 10 per unit 42 left',
        '',
      ].join('\n'),
    );
  });

  it('is proto3 JSON with every field with -json', async () => {
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
    const { code, out } = await call(address, '-json');
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

  it('equals the response of POST /json with -json', async () => {
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
    expect(JSON.parse((await call(address, '-json')).out)).toEqual(JSON.parse(verdict));
  });

  it('prints the version of package.json with -version', async () => {
    expect(await run(['--version'])).toEqual({ code: 0, out: `weir-client ${packageFile.version}\n`, err: '' });
  });

  it.each(['-h', '--help'])('lists the flags with %s', async (flag) => {
    const { code, out, err } = await run([flag]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^ {2}-dial_string address .*\(default localhost:8081\)$/m);
    expect(out).toMatch(/^ {2}-grpc-use-tls /m);
  });
});

describe('the exit code of weir-client', () => {
  it.each([
    [Code.OK, [], 0],
    [Code.OVER_LIMIT, [], 0],
    [Code.OK, ['-exit_code'], 0],
    [Code.OVER_LIMIT, ['-exit_code'], 2],
    [Code.OVER_LIMIT, ['-exit_code', '-json'], 2],
  ])('for response code %i with flags %j is %i', async (overallCode, flags, code) => {
    const address = await serve(answering({ overallCode }));
    expect((await call(address, ...flags)).code).toBe(code);
  });
});

describe('weir-client prints one sentence and exits with 1', () => {
  const HINT = '\nRun weir-client -h for a list of the flags.\n';

  it.each([
    [[], 'flag -domain is required'],
    [['-domain', 'd'], 'flag -descriptors is required'],
    [
      ['-domain', 'd', '-descriptors', 'a'],
      'invalid value "a" for flag -descriptors: expected name=value instead of "a"',
    ],
    [
      ['-domain', 'd', '-descriptors', 'a=b,'],
      'invalid value "a=b," for flag -descriptors: expected name=value instead of ""',
    ],
    [
      ['-domain', 'd', '-descriptors', 'a=b,=c'],
      'invalid value "a=b,=c" for flag -descriptors: expected name=value instead of "=c"',
    ],
    [['-domain', 'd', '-descriptors', 'a=b', 'c=d'], 'unexpected argument "c=d"'],
    [['-domian', 'd'], 'unknown flag -domian; did you mean -domain?'],
    [
      ['-domain', 'd', '-descriptors', 'a=b', '-dial_string='],
      'invalid value "" for flag -dial_string: expected host:port or unix:/path',
    ],
    [['-domain', 'd', '-descriptors', 'a=b', '-grpc-cert-file', 'x'], 'flag -grpc-cert-file requires -grpc-use-tls'],
    [
      ['-domain', 'd', '-descriptors', 'a=b', '-grpc-use-tls', '-grpc-cert-file', 'x'],
      'flags -grpc-cert-file and -grpc-key-file must be used together',
    ],
    [
      ['-domain', 'd', '-descriptors', 'a=b', '-grpc-use-tls', '-grpc-server-ca-file', '/nonexistent'],
      "cannot read the file of flag -grpc-server-ca-file: ENOENT: no such file or directory, open '/nonexistent'",
    ],
  ])('for the command line %j', async (argv, message) => {
    expect(await run(argv)).toEqual({ code: 1, out: '', err: `weir-client: ${message}${HINT}` });
  });

  it('when the server responds with an error', async () => {
    const address = await serve((_call, callback) =>
      callback({ code: status.FAILED_PRECONDITION, details: 'no rate limit configuration loaded' }),
    );
    expect(await call(address)).toEqual({
      code: 1,
      out: '',
      err: `weir-client: ${address} responded with FAILED_PRECONDITION: no rate limit configuration loaded\n`,
    });
  });

  it('when no server listens', async () => {
    const server = createServer();
    const address = await listen(server);
    await new Promise((resolve) => {
      server.close(resolve);
    });
    expect(await call(address)).toEqual({
      code: 1,
      out: '',
      err: `weir-client: cannot connect to ${address}: connection refused; check that the server is running\n`,
    });
  });

  it('when the address contains a password, which it hides', async () => {
    expect((await call('http://ann:hush@localhost:1')).err).toBe(
      'weir-client: cannot connect to http://***@localhost:1: the host name cannot be resolved\n',
    );
  });

  it('when the socket does not exist', async () => {
    expect((await call('unix:/nonexistent')).err).toBe(
      'weir-client: cannot connect to unix:/nonexistent: the socket does not exist\n',
    );
  });

  it('when the server uses another protocol', async () => {
    const address = await listen(
      createServer((socket) =>
        socket
          .on('error', () => {})
          .end('HTTP/1.1 400 Bad Request\r\n\r\n')
          .resume(),
      ),
    );
    expect((await call(address)).err).toBe(
      `weir-client: cannot connect to ${address}: the server does not speak gRPC\n`,
    );
  });

  it('when the server sends nothing', async () => {
    const address = await listen(
      createServer((socket) => {
        cleanups.push(() => socket.on('error', () => {}).destroy());
      }),
    );
    expect(await run(['-dial_string', address, '-domain', 'd', '-descriptors', 'a=b'], 200)).toEqual({
      code: 1,
      out: '',
      err: `weir-client: no response from ${address} within 0.2 s\n`,
    });
  });

  it('when the server accepts the request and never responds', async () => {
    const address = await serve(() => {});
    expect((await run(['-dial_string', address, '-domain', 'd', '-descriptors', 'a=b'], 500)).err).toBe(
      `weir-client: no response from ${address} within 0.5 s\n`,
    );
  });
});

describe('weir-client with TLS', () => {
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

  it('connects to a server whose CA is given', async () => {
    const address = await serve(answering(), { credentials: serverCredentials(false) });
    expect(await call(address, ...trust)).toMatchObject({ code: 0, err: '' });
  });

  it('presents its certificate to a server that requires one', async () => {
    const address = await serve(answering(), { credentials: serverCredentials(true) });
    const identity = ['-grpc-cert-file', file('client.pem'), '-grpc-key-file', file('client.key')];
    expect(await call(address, ...trust, ...identity)).toMatchObject({ code: 0, err: '' });
    expect(await call(address, ...trust)).toMatchObject({ code: 1, out: '' });
  });

  it('does not connect to a server whose CA it does not trust', async () => {
    const address = await serve(answering(), { credentials: serverCredentials(false) });
    const { code, err } = await call(address, '-grpc-use-tls');
    expect(code).toBe(1);
    expect(err).toMatch(/^weir-client: cannot connect to localhost:\d+: .*certificate.*\n$/);
  });

  it('reports a server without TLS', async () => {
    const address = await serve(answering());
    expect((await call(address, ...trust)).err).toBe(
      `weir-client: cannot connect to ${address}: the server does not speak TLS; try without -grpc-use-tls\n`,
    );
  });

  it('reports a file that is not a certificate', async () => {
    const identity = ['-grpc-cert-file', __filename, '-grpc-key-file', __filename];
    expect(await call('localhost:1', ...trust, ...identity)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^weir-client: invalid TLS files: .*\n/),
    });
  });
});

describe('the program weir-client', () => {
  it('prints to standard output and standard error and ends with the exit code', () => {
    function start(...argv: string[]) {
      const program = join(__dirname, '../../src/cli/weir-client.ts');
      const hook = join(__dirname, '../support/processes/typescript-hook.cjs');
      return spawnSync(process.execPath, ['--require', hook, program, ...argv], { encoding: 'utf8' });
    }
    expect(start('-h')).toMatchObject({ status: 0, stdout: expect.stringContaining('-dial_string'), stderr: '' });
    expect(start('-x')).toMatchObject({
      status: 1,
      stdout: '',
      stderr: 'weir-client: unknown flag -x\nRun weir-client -h for a list of the flags.\n',
    });
  });
});
