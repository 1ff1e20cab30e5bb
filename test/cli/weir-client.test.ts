import { type AddressInfo, type Server as NetServer, createServer } from 'node:net';
import { type SecureVersion, createServer as createTlsServer } from 'node:tls';
import { status } from '@grpc/grpc-js';
import { explainError } from '../../src/cli/client/explain-error';
import { CLIENT } from '../../src/cli/client/client';
import {
  RateLimitRequest,
  RateLimitResponse,
  RateLimitResponse_Code as Code,
  RateLimitResponse_DescriptorStatus as DescriptorStatus,
  RateLimitResponse_RateLimit_Unit as Unit,
} from '../../src/gen/envoy/service/ratelimit/v3/rls';
import type { ServerTls } from '../../src/grpc/http2/tls';
import { type UnaryHandler, GrpcStatus } from '../../src/grpc/method';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { serveGrpc } from '../../src/grpc/server/grpc-server';
import { type Authority, type Certificate, newAuthority, selfSigned } from '../support/data/certificates';
import { CONTROL, HOSTILE, SHOWN } from '../support/data/hostile-text';
import { TemporaryFolder } from '../support/data/temporary-folder';
import { runOf } from './run-program';

const DAY = 24 * 60 * 60 * 1000;

/** A code and a unit that the protocol does not define. */
const NO_SUCH_CODE: Code = JSON.parse('9');
const NO_SUCH_UNIT: Unit = JSON.parse('42');

const folder = new TemporaryFolder();
const closings: (() => unknown)[] = [];

/** What the rate limit service answers, on a port and on a Unix socket; set by each test. */
let handler: UnaryHandler;
const unary = new Map<string, UnaryHandler>([[SHOULD_RATE_LIMIT, (message, received) => handler(message, received)]]);
const socketPath = folder.at('weir.sock');
const servers = [{ host: '127.0.0.1', port: 0 }, { path: socketPath }].map((at) => serveGrpc({ listen: at, unary }));
let address: string;

beforeAll(async () => {
  const [onPort] = await Promise.all(servers);
  address = `localhost:${(onPort!.address as AddressInfo).port}`;
});
beforeEach(() => answer({}));
afterEach(() => Promise.all(closings.splice(0).map((close) => close())));
afterAll(async () => {
  for (const server of servers) await (await server).close();
  folder[Symbol.dispose]();
});

const EMPTY = new Uint8Array();
const NO_LIMIT: DescriptorStatus = { ...DescriptorStatus.decode(EMPTY), code: Code.OK };
const MINUTE = { requestsPerUnit: 10, unit: Unit.MINUTE, name: '' };

/** Lets the service answer a response with these fields. */
function answer(fields: Partial<RateLimitResponse>): void {
  const response = { ...RateLimitResponse.decode(EMPTY), overallCode: Code.OK, statuses: [NO_LIMIT], ...fields };
  handler = (_message, received) => received.reply(RateLimitResponse.encode(response).finish());
}

/** Starts another server and returns its address. */
async function listen(started: NetServer): Promise<string> {
  await new Promise<void>((resolve) => void started.listen(0, 'localhost', resolve));
  closings.push(() => started.close());
  return `localhost:${(started.address() as AddressInfo).port}`;
}

async function run(argv: readonly string[], environment: NodeJS.ProcessEnv = {}, isTTY = false) {
  const { exitCode: code, stdout: out, stderr: err } = await runOf(CLIENT, argv, environment, isTTY);
  return { code, out, err };
}

function call(at: string, ...more: string[]) {
  return run(['-address', at, '-domain', 'shop', '-descriptors', 'user=ann', ...more]);
}

describe('weir-client', () => {
  it('shows the names that flags have in the Go client', async () => {
    const { out } = await run(['-help']);
    expect(out).toContain(
      '\nUsage: weir-client -dial_string host:port -domain name -descriptors name=value,… [flags]\n',
    );
    expect(out).toMatch(/^ {2}-dial_string, -address address {2}/m);
  });

  it('sends the request that its flags describe', async () => {
    const requests: RateLimitRequest[] = [];
    handler = (message, received) => {
      requests.push(RateLimitRequest.decode(message));
      received.reply(EMPTY);
    };
    const argv = `--dial_string=${address} -domain shop -descriptors a=b,c=d --descriptors=e=f=g,h= -hits_addend 3`;
    await run(argv.split(' '));
    const rest = { limit: undefined, hitsAddend: undefined, isNegativeHits: false };
    function entries(...pairs: readonly string[]) {
      return { entries: pairs.map((pair) => ({ key: pair[0], value: pair.slice(2) })), ...rest };
    }
    const descriptors = [entries('a=b', 'c=d'), entries('e=f=g', 'h=')];
    expect(requests).toEqual([{ domain: 'shop', descriptors, hitsAddend: 3 }]);
  });

  it('connects to a Unix socket', async () => {
    expect(await call(`unix:${socketPath}`)).toMatchObject({ code: 0, err: '' });
  });

  it.each([
    [Code.OK, [], 0],
    [Code.OVER_LIMIT, [], 0],
    [Code.OVER_LIMIT, ['-exit_code'], 3],
    [Code.OVER_LIMIT, ['-exit_code', '-json'], 3],
  ])('ends for the response code %i with the flags %j with %i', async (overallCode, flags, code) => {
    answer({ overallCode });
    expect((await call(address, ...flags)).code).toBe(code);
  });
});

describe('weir-client -n', () => {
  it.each(['0', '512.5'])(
    'counts the responses by code, and the calls without one by reason, at a rate of %s',
    async (rate) => {
      let calls = 0;
      handler = (_message, received) => {
        calls += 1;
        if (calls % 3 === 0) return received.fail(GrpcStatus.UNAVAILABLE, 'shutting down');
        const overallCode = calls % 3 === 1 ? Code.OK : Code.OVER_LIMIT;
        return received.reply(RateLimitResponse.encode({ ...RateLimitResponse.decode(EMPTY), overallCode }).finish());
      };
      const { code, out, err } = await call(address, '-n', '30', '-rate', rate, '-json', '-exit_code');
      expect([code, err, calls]).toEqual([1, '', 30]);
      expect(JSON.parse(out)).toEqual({
        calls: 30,
        seconds: expect.any(Number),
        codes: { OK: 10, OVER_LIMIT: 10 },
        failures: { [`${address} responded with UNAVAILABLE: shutting down`]: 10 },
        latency: { p50: expect.any(Number), p99: expect.any(Number), max: expect.any(Number) },
      });
      const failed = await call('localhost:1', '-n', '2');
      const reason = 'cannot connect to localhost:1: connection refused; check that the server is running';
      expect([failed.code, failed.out]).toEqual([1, expect.stringContaining(`\n  2 without response: ${reason}\n`)]);
    },
  );

  it('shows its progress on a terminal, and prints what it has counted when it is interrupted', async () => {
    let calls = 0;
    handler = (_message, received) => {
      calls += 1;
      if (calls > 250) process.emit('SIGINT');
      setTimeout(() => received.reply(EMPTY), 10);
    };
    const argv = ['-address', address, '-domain', 'd', '-descriptors', 'a=b', '-n', '10000000'];
    const { code, out, err } = await run(argv, {}, true);
    expect([code, out]).toEqual([0, expect.stringMatching(/^2\d\d calls in [\d.]+ s: 2\d\d UNKNOWN\n/)]);
    expect(err).toMatch(/^\r\d+ of 10000000 calls: \d+ UNKNOWN/);
  });
});

describe('the programs on a terminal', () => {
  const [GREEN, RED, PLAIN] = ['\u001b[32m', '\u001b[31m', '\u001b[0m'];

  it.each<[environment: NodeJS.ProcessEnv, flags: string[], line: string]>([
    [{}, [], `${RED}OVER_LIMIT${PLAIN}`],
    [{ NO_COLOR: '' }, [], `${RED}OVER_LIMIT${PLAIN}`],
    [{ NO_COLOR: '1' }, [], 'OVER_LIMIT'],
    [{ TERM: 'dumb' }, [], 'OVER_LIMIT'],
    [{}, ['-json'], '{'],
  ])('colour what went wrong with the environment %j and the flags %j', async (environment, flags, line) => {
    answer({ overallCode: Code.OVER_LIMIT });
    const argv = ['-address', address, '-domain', 'd', '-descriptors', 'error=OK,x=failed'];
    const { out } = await run([...argv, ...flags], environment, true);
    expect(out.split('\n')[0]).toBe(line);
    // Not the texts of the request.
    if (line.startsWith(RED)) expect(out.split('\n')[1]).toContain(`error=OK,x=failed  ${GREEN}OK${PLAIN}`);
    expect((await run([...argv, ...flags], environment)).out).not.toContain('\u001b');
  });
});

describe('the output of weir-client', () => {
  it('contains the overall code and one line per descriptor, of the request or not', async () => {
    const few = { ...MINUTE, requestsPerUnit: 5, name: 'few' };
    const soon = { seconds: 1n, nanos: 500_000_000 };
    answer({
      overallCode: Code.OVER_LIMIT,
      statuses: [
        { ...NO_LIMIT, currentLimit: MINUTE, limitRemaining: 9, durationUntilReset: { seconds: 15_023n, nanos: 0 } },
        { ...NO_LIMIT, code: Code.OVER_LIMIT, currentLimit: few, durationUntilReset: soon },
        NO_LIMIT,
        { ...NO_LIMIT, limitRemaining: 4294967295 },
        { ...NO_LIMIT, code: NO_SUCH_CODE, currentLimit: { ...MINUTE, unit: NO_SUCH_UNIT } },
      ],
      responseHeadersToAdd: [{ key: 'RateLimit-Limit', value: '5', rawValue: Buffer.alloc(0) }],
      requestHeadersToAdd: [{ key: 'x-a', value: 'b', rawValue: Buffer.alloc(0) }],
      dynamicMetadata: { domain: 'shop' },
    });
    const more = ['-descriptors', 'remote_address=10.0.0.1,path=/', '-descriptors', 'c=d', '-descriptors', 'e=f'];
    const { code, out, err } = await call(address, ...more);
    expect([code, err]).toEqual([0, '']);
    expect(out.split('\n')).toEqual([
      'OVER_LIMIT',
      '  user=ann                        OK          9 of 10 per minute left, resets in 4h10m23s',
      '  remote_address=10.0.0.1,path=/  OVER_LIMIT  0 of 5 per minute left, resets in 1.5s (few)',
      '  c=d                             OK          no limit applies',
      '  e=f                             OK          unlimited',
      '  descriptor 5                    code 9      0 of 10 per unit 42 left',
      'response header RateLimit-Limit: 5',
      'request header x-a: b',
      'metadata {"domain":"shop"}',
      '',
    ]);
  });

  it('says how many run at a time', async () => {
    const jobs = { ...MINUTE, unit: Unit.UNKNOWN, requestsPerUnit: 3 };
    const none = { ...jobs, requestsPerUnit: 0, name: 'closed' };
    answer({
      statuses: [
        { ...NO_LIMIT, currentLimit: jobs, limitRemaining: 2, durationUntilReset: { seconds: 0n, nanos: 0 } },
        { ...NO_LIMIT, code: Code.OVER_LIMIT, currentLimit: none },
        { ...NO_LIMIT, code: Code.OVER_LIMIT },
      ],
    });
    const { out } = await call(address, '-descriptors', 'job=a', '-descriptors', 'job=b');
    expect(out).toMatch(/ 2 of 3 at a time left\n.* 0 of 0 at a time left \(closed\)\n.* no limit applies\n$/);
  });

  it('shows durations with units, the largest first', async () => {
    const durations: readonly (readonly [seconds: bigint, nanos: number, text: string])[] = [
      [0n, 0, '0s'],
      [60n, 0, '1m'],
      [31_536_000n, 0, '365d'],
      [60n, 1_000_000, '1m0.001s'],
      [-1n, -500_000_000, '-1.5s'],
    ];
    const statuses = durations.map(([seconds, nanos]) => ({ ...NO_LIMIT, durationUntilReset: { seconds, nanos } }));
    answer({ statuses });
    const { out } = await call(address);
    expect(out.match(/(?<=resets in ).*/g)).toEqual(durations.map(([, , text]) => text));
  });

  it('is proto3 JSON with every field with -json', async () => {
    const reset = { seconds: 0n, nanos: 0 };
    answer({
      statuses: [
        { code: NO_SUCH_CODE, currentLimit: MINUTE, limitRemaining: 9, durationUntilReset: reset },
        { ...NO_LIMIT, durationUntilReset: { seconds: -1n, nanos: -500_000_000 } },
      ],
      responseHeadersToAdd: [{ key: 'a', value: '', rawValue: Buffer.from([0xff]) }],
      requestHeadersToAdd: [{ key: 'c', value: 'd', rawValue: Buffer.alloc(0) }],
      rawBody: Buffer.from('body'),
      dynamicMetadata: { list: [1, null, { a: '' }] },
    });
    const limit = { requestsPerUnit: 10, unit: 'MINUTE' };
    expect(JSON.parse((await call(address, '-json')).out)).toEqual({
      overallCode: 'OK',
      statuses: [
        { code: 9, currentLimit: limit, limitRemaining: 9, durationUntilReset: '0s' },
        { code: 'OK', durationUntilReset: '-1.500s' },
      ],
      responseHeadersToAdd: [{ key: 'a', rawValue: '/w==' }],
      requestHeadersToAdd: [{ key: 'c', value: 'd' }],
      rawBody: 'Ym9keQ==',
      dynamicMetadata: { list: [1, null, { a: '' }] },
    });
  });

  it('has no control characters of a server, as text, as JSON, which escapes them, and in errors', async () => {
    answer({
      statuses: [{ ...NO_LIMIT, currentLimit: { ...MINUTE, name: HOSTILE } }],
      responseHeadersToAdd: [{ key: 'x', value: HOSTILE, rawValue: Buffer.alloc(0) }],
      dynamicMetadata: { key: HOSTILE },
    });
    const text = (await call(address)).out;
    expect([text, text.split('\n').length]).toEqual([expect.not.stringMatching(CONTROL), 5]);
    expect(text).toContain(
      `  user=ann  OK  0 of 10 per minute left (${SHOWN})\nresponse header x: ${SHOWN}\nmetadata {"key":"a`,
    );
    const json = (await call(address, '-json')).out;
    expect(json).not.toMatch(CONTROL);
    expect(JSON.parse(json)).toMatchObject({ responseHeadersToAdd: [{ key: 'x', value: HOSTILE }] });
    handler = (_message, received) => received.fail(GrpcStatus.INTERNAL, HOSTILE);
    expect((await call(address)).err).toBe(`weir-client: ${address} responded with INTERNAL: ${SHOWN}\n`);
    // OpenSSL issues no certificate with such a name.
    const details = `No connection established. Last error: Error: Host: a. is not in the cert's altnames: DNS:b\u009b2J`;
    const tls = { isTls: true, hasCertificate: false, serverSpeaksTls: async () => true };
    const error = { code: status.UNAVAILABLE, details };
    const explanation = await explainError({ address: 'a:1', timeoutMs: 1, ...tls }, error);
    expect(explanation).toMatch(/not for a but for b\\u009b2J$/);
  });
});

describe('weir-client prints one sentence and exits', () => {
  const GIVEN = '-domain d -descriptors a=b';

  it.each([
    ['', 'flag -domain is required'],
    ['-domain d', 'flag -descriptors is required'],
    ['-domain d -descriptors a=b,', 'invalid descriptor "a=b,": expected name=value instead of ""'],
    ['-domain d -descriptors =c', 'invalid descriptor "=c": expected name=value instead of "=c"'],
    [`${GIVEN} c=d`, 'unexpected argument "c=d"'],
    [`${GIVEN} -address=`, 'invalid value "" for flag -address: expected host:port or unix:/path'],
    [`${GIVEN} -n 0`, 'flag -n requires at least 1'],
    [`${GIVEN} -grpc-cert-file x`, 'flag -grpc-cert-file requires -grpc-use-tls'],
    [`${GIVEN} -grpc-use-tls -grpc-cert-file x`, 'flags -grpc-cert-file and -grpc-key-file must be used together'],
    [
      `${GIVEN} -grpc-use-tls -grpc-server-ca-file /nonexistent`,
      'cannot use the file of flag -grpc-server-ca-file (/nonexistent): it cannot be read (ENOENT)',
    ],
  ])('with 2 for the command line "%s"', async (line, message) => {
    const err = `weir-client: ${message}\nRun weir-client -h for its flags.\n`;
    expect(await run(line === '' ? [] : line.split(' '))).toEqual({ code: 2, out: '', err });
  });

  it.each([
    ['localhost:1', 'cannot connect to localhost:1: connection refused; check that the server is running'],
    // The password is hidden.
    ['http://ann:hush@localhost:1', 'cannot connect to http://***@localhost:1: the host name cannot be resolved'],
    ['unix:/nonexistent', 'cannot connect to unix:/nonexistent: the socket does not exist'],
  ])('with 1 when nothing listens at %s', async (at, message) => {
    expect(await call(at)).toEqual({ code: 1, out: '', err: `weir-client: ${message}\n` });
  });

  it('with 1 when the server responds with an error, or never', async () => {
    handler = (_message, received) => received.fail(GrpcStatus.FAILED_PRECONDITION, 'no rules loaded');
    expect((await call(address)).err).toBe(
      `weir-client: ${address} responded with FAILED_PRECONDITION: no rules loaded\n`,
    );
    handler = () => undefined;
    const argv = ['-timeout', '1', '-domain', 'd', '-descriptors', 'a=b', '-dial_string'];
    expect((await run([...argv, address])).err).toBe(`weir-client: no response from ${address} within 1 s\n`);
    const silent = await listen(
      createServer((socket) => void closings.push(() => socket.on('error', () => undefined).destroy())),
    );
    expect((await run([...argv, silent])).err).toBe(`weir-client: no response from ${silent} within 1 s\n`);
  });
});

describe('weir-client with TLS prints', () => {
  let authority: Authority;
  let certificate: Certificate;
  beforeAll(() => {
    authority = newAuthority();
    const stranger = newAuthority();
    certificate = authority.issue('localhost');
    folder.write('ca.pem', authority.ca);
    for (const [name, issuer] of Object.entries({ client: authority, stranger })) {
      const { cert, key } = issuer.issue('weir');
      folder.write(`${name}.pem`, cert);
      folder.write(`${name}.key`, key);
    }
    stranger.dispose();
  });
  afterAll(() => authority.dispose());

  /** Starts the gRPC server of weir; it has no methods. */
  async function weir(tls?: ServerTls): Promise<string> {
    const started = await serveGrpc({ listen: { host: '127.0.0.1', port: 0 }, tls, unary: new Map() });
    closings.push(() => started.close());
    return `localhost:${(started.address as AddressInfo).port}`;
  }

  /** A server with TLS up to this version that requires a client certificate. */
  function requiring(maxVersion: SecureVersion): Promise<string> {
    const options = { ...certificate, ca: authority.ca, requestCert: true, maxVersion, ALPNProtocols: ['h2'] };
    return listen(
      createTlsServer(options)
        .on('tlsClientError', (_error, socket) => socket.destroy())
        .on('secureConnection', (socket) => socket.on('error', () => undefined)),
    );
  }

  /** What is wrong with a server, and nothing else. */
  async function problem(at: string, ...flags: string[]): Promise<string> {
    return (await call(at, ...flags)).err.replace(`weir-client: cannot connect to ${at}: `, '').trimEnd();
  }

  const TLS = ['-grpc-use-tls'];
  const TRUSTED = [...TLS, '-grpc-server-ca-file', folder.at('ca.pem')];
  function presenting(name: string): string[] {
    return [...TRUSTED, '-grpc-cert-file', folder.at(`${name}.pem`), '-grpc-key-file', folder.at(`${name}.key`)];
  }

  it('what is wrong with the certificate of the server', async () => {
    const other = authority.issue('shop.example', '192.0.2.1');
    const OF_SERVER = 'the certificate of the server';
    expect(await problem(await weir(other), ...TRUSTED)).toBe(
      `${OF_SERVER} is not for localhost but for shop.example, 192.0.2.1`,
    );
    const byIp = (await weir(certificate)).replace('localhost', '127.0.0.1');
    expect(await problem(byIp, ...TRUSTED)).toBe(`${OF_SERVER} is not for the address 127.0.0.1`);
    expect(await problem(await weir(certificate), ...TLS)).toBe(
      `${OF_SERVER} is from an unknown CA; give that CA with -grpc-server-ca-file`,
    );
    const expired = selfSigned(new Date(Date.now() - 2 * DAY), new Date(Date.now() - DAY));
    const flags = [...TLS, '-grpc-server-ca-file', folder.write('expired.pem', expired.cert)];
    expect(await problem(await weir(expired), ...flags)).toBe(`${OF_SERVER} has expired`);
  });

  it('that the server requires a client certificate, or may require or reject one', async () => {
    const missing = 'the server requires a client certificate; give one with -grpc-cert-file and -grpc-key-file';
    const mutual = await weir({ ...certificate, clientCa: authority.ca });
    expect(await problem(mutual, ...TRUSTED)).toBe(missing);
    expect(await problem(await requiring('TLSv1.3'), ...TRUSTED)).toBe(missing);
    // TLS 1.2 does not report it.
    expect(await problem(await requiring('TLSv1.2'), ...TRUSTED)).toMatch(/it may require a client certificate/);
    expect(await problem(mutual, ...presenting('stranger'))).toBe(
      'the server closed the connection; it may reject the client certificate',
    );
    expect(await problem(mutual, ...presenting('client'))).toMatch(/responded with UNIMPLEMENTED/);
  });

  it('that the server does not speak TLS, requires it, or does not speak gRPC', async () => {
    const plain = 'the server does not speak TLS; try without -grpc-use-tls';
    expect(await problem(address, ...TRUSTED)).toBe(plain);
    expect(await problem(await listen(createServer((socket) => socket.destroy())), ...TRUSTED)).toBe(plain);
    const advice = 'the server requires TLS; try -grpc-use-tls';
    expect(await problem(await weir(certificate))).toBe(advice);
    expect(await problem(await weir({ ...certificate, clientCa: authority.ca }))).toBe(advice);
    expect(await problem(await requiring('TLSv1.2'))).toBe(advice);
    const http = createServer((socket) => {
      socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n\r\n');
      socket.resume();
    });
    expect(await problem(await listen(http))).toBe('the server does not speak gRPC');
  });

  it('that a file is not a certificate', async () => {
    const flags = ['-grpc-cert-file', __filename, '-grpc-key-file', __filename];
    expect(await problem('localhost:1', ...TRUSTED, ...flags)).toMatch(/^weir-client: invalid TLS files: /);
  });
});
