import { fuzzConnections, fuzzSockets } from './fuzz';
import { endedOf, goawaysOf, ping, resetsOf } from './frames';
import { REQUIREMENTS } from './requirements';
import { TRANSPORTS, TransportServer } from './transports';

const SEED = process.env['WEIR_SEED'] ?? 'long fuzz';

describe.each(TRANSPORTS)('an HTTP/2 server over %s', (transport) => {
  let server: TransportServer;
  beforeAll(async () => {
    server = await TransportServer.start(transport);
  });
  afterAll(() => server[Symbol.asyncDispose]());
  afterEach(async () => {
    await server.expectGoodClientServed();
    server.closeOthers();
    expect(server.internalErrors).toEqual([]);
  });

  it.each(REQUIREMENTS)('$reference: $title', async ({ before, bytes, then }) => {
    const client = server.connect();
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
  it('cause no internal error, no hang and no leak on 50,000 connections', () => {
    fuzzConnections(50_000, SEED);
  });

  it('do not affect another client, on 500 connections over sockets', () => fuzzSockets(500, SEED));
});
