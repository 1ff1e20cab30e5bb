import { Client, credentials } from '@grpc/grpc-js';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expectHarmless, expectHarmlessOverSockets } from './http2/fuzz';
import { endedOf, goawaysOf, ping, resetsOf } from './http2/frames';
import { REQUIREMENTS } from './http2/requirements';
import { describeTransports } from './http2/transports';
import { startServer, unaryCall } from './server/servers';
import { prefixed } from '../support/clients/http2-connection';
import { TemporaryFolder } from '../support/data/temporary-folder';

jest.setTimeout(24 * 3_600_000);

const SEED = process.env['WEIR_SEED'] ?? 'long fuzz';
/** See bench/conformance/README.md. */
const CONNECTIONS = Number(process.env['WEIR_FUZZ_SEQUENCES'] ?? 50_000);

describeTransports((server) => {
  it.each(REQUIREMENTS)('$reference: $title', async ({ before, bytes, then }) => {
    const client = server().connect();
    if (before.length > 0) {
      client.send(before, ping('settled.'));
      await client.until('the beginning', () => client.isAcknowledged('settled.'));
    }
    client.send(bytes);
    if ('goaway' in then) {
      await client.until('the end', () => client.isEnded);
      // The GOAWAY arrived although the client had sent more than the server read.
      expect(goawaysOf(client.frames)).toEqual([expect.objectContaining({ code: then.goaway })]);
      return;
    }
    client.send(ping('alive...'));
    const answered = 'answers' in then ? then.answers : [];
    await client.until('the acknowledgement of the PING and all answers', () => {
      const ended = endedOf(client.frames);
      return client.isAcknowledged('alive...') && answered.every((stream) => ended.includes(stream));
    });
    expect(resetsOf(client.frames)).toEqual('resets' in then ? then.resets : []);
    if ('answers' in then) expect(endedOf(client.frames)).toEqual(then.answers);
    expect(goawaysOf(client.frames)).toEqual([]);
  });
});

describe(`random and damaged frames with seed ${SEED}`, () => {
  it(`cause no internal error, no hang and no leak on ${CONNECTIONS} connections`, () => {
    expectHarmless(CONNECTIONS, SEED);
  });

  it('do not affect another client, on 500 connections over sockets', () => expectHarmlessOverSockets(500, SEED));
});

describe('a gRPC server under load', () => {
  const path = '/test.Service/Echo';

  it('succeeds with every call of h2load on 1,024 concurrent streams', async () => {
    const server = await startServer();
    using folder = new TemporaryFolder();
    // Each of its bytes is a character of ASCII, the length of 100 included.
    const body = folder.write('body', prefixed('x'.repeat(100)).toString('latin1'));
    const fields = ['-H', 'content-type: application/grpc', '-H', 'te: trailers'];
    const url = `http://127.0.0.1:${server.address.port}${path}`;
    const load = ['-n', '20000', '-c', '4', '-m', '1024', '-d', body, ...fields, url];
    try {
      const { stdout } = await promisify(execFile)('h2load', load);
      expect(stdout).toContain('20000 done, 20000 succeeded, 0 failed, 0 errored, 0 timeout');
      expect(server.seen.rejected).toEqual([]);
    } finally {
      await server.close();
    }
  });

  it('fails no call of a grpc-js client when connections reach their maximum age', async () => {
    const server = await startServer({ limits: { maxAgeMs: 150, maxAgeGraceMs: 60_000 } });
    const client = new Client(`127.0.0.1:${server.address.port}`, credentials.createInsecure());
    let left = 20_000;
    async function callOneAfterTheOther(): Promise<void> {
      for (; left > 0; left -= 1) await unaryCall(client, path, Buffer.from('hello'));
    }
    try {
      await Promise.all(Array.from({ length: 16 }, callOneAfterTheOther));
      expect(server.seen.rejected).toEqual([]);
    } finally {
      client.close();
      await server.close();
    }
  });
});
