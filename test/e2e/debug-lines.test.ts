import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { callByHand } from '../support/clients/call-by-hand';
import { type Authority, newAuthority } from '../support/data/certificates';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const PLAIN = 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 5}}]\n';
const PEER = String.raw`peer=127\.0\.0\.1:\d+`;

let rules: RuleFolder;
let authority: Authority;
let folder: string;
beforeAll(async () => {
  rules = await RuleFolder.with({ 'shop.yaml': PLAIN });
  authority = newAuthority();
  folder = await mkdtemp(join(tmpdir(), 'weir-debug-'));
  const { cert, key } = authority.issue('localhost');
  await writeFile(join(folder, 'tls.crt'), cert);
  await writeFile(join(folder, 'tls.key'), key);
  await writeFile(join(folder, 'ca.crt'), authority.ca);
});
afterAll(async () => {
  await rules[Symbol.asyncDispose]();
  authority.dispose();
  await rm(folder, { recursive: true });
});

function start(level: string, more: Readonly<Record<string, string>> = {}) {
  return WeirProcess.start({ env: { ...rules.env, LOG_LEVEL: level, DISABLE_STATS: 'true', ...more } });
}

/** Sends requests and bytes that are rejected. */
async function provoke(weir: WeirProcess): Promise<void> {
  expect((await weir.http('/json', { method: 'POST', body: '{"domain": 5}' })).status).toBe(400);
  // A field of an impossible wire type.
  expect(await callByHand(weir.grpcAddress, SHOULD_RATE_LIMIT, Buffer.from([0x0f]))).toBe(13);
  const socket = connect(weir.ports.grpc, '127.0.0.1');
  socket.on('error', () => undefined).resume();
  socket.write('GET / HTTP/1.1\r\n\r\n');
  await new Promise((resolve) => socket.once('close', resolve));
}

describe('the log at level debug', () => {
  it('has a line with the reason for each malformed request and each rejected connection', async () => {
    await using weir = await start('debug');
    await provoke(weir);
    expect(await weir.line(/malformed request rejected" via=\/json/)).toMatch(
      new RegExp(String.raw`level=debug .* reason="[^"]*domain[^"]*" ${PEER}$`),
    );
    expect(await weir.line(/malformed request rejected" via=gRPC/)).toMatch(/level=debug .* reason="?[^" ]+/);
    expect(await weir.line(/gRPC connection or stream rejected/)).toMatch(
      new RegExp(String.raw`level=debug .* kind=protocol_error reason="[^"]*preface[^"]*" ${PEER}$`),
    );
  });

  it.each<[string, Partial<ConnectionOptions>, string]>([
    ['does not present the certificate that is required', {}, 'peer did not return a certificate'],
    ['does not trust the certificate', { ca: [] }, 'the client has disconnected; it may not trust the certificate'],
    ['offers another protocol', { ALPNProtocols: ['http/1.1'] }, 'no application protocol'],
  ])('has a line with the reason and the peer for a TLS client that %s', async (_, options, reason) => {
    await using weir = await start('debug', {
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: join(folder, 'tls.crt'),
      GRPC_SERVER_TLS_KEY: join(folder, 'tls.key'),
      GRPC_CLIENT_TLS_CACERT: join(folder, 'ca.crt'),
    });
    const socket = connectTls({
      port: weir.ports.grpc,
      host: '127.0.0.1',
      servername: 'localhost',
      ca: authority.ca,
      ALPNProtocols: ['h2'],
      ...options,
    });
    socket.on('error', () => undefined).resume();
    expect(await weir.line(/gRPC connection or stream rejected/)).toMatch(
      new RegExp(`level=debug .* kind=tls_handshake reason="${reason}" ${PEER}$`),
    );
  });
});

test('the log at level info has no line for rejected requests and connections', async () => {
  await using weir = await start('info');
  await provoke(weir);
  expect(weir.output).not.toContain('rejected');
});
