import dns from 'node:dns';
import { createServer } from 'node:net';
import { type HttpCall, callHttp } from '../../src/cli/call-http';
import { ApiStub, LOOPBACK_IPV6, withIpv6 } from './api-stub';

function at(address: string, call: Partial<HttpCall> = {}): HttpCall {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replaceAll(/[[\]]/g, '');
  return { host, port: Number(address.slice(colon + 1)), path: '/', timeoutMs: 5_000, ...call };
}

/** Calls a server that sends some bytes after the request, and then nothing. */
async function callBytes(bytes: string) {
  const server = createServer((socket) => socket.on('error', () => undefined).once('data', () => socket.write(bytes)));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = Object(server.address()) as { readonly port: number };
    return await callHttp(at(`127.0.0.1:${port}`));
  } finally {
    server.close();
  }
}

afterEach(() => void jest.restoreAllMocks());

describe('callHttp', () => {
  it('sends method, headers and body, and closes its connection', async () => {
    const requests: unknown[] = [];
    await using stub = await ApiStub.start(({ method, url, headers }, response) => {
      requests.push({ method, url, headers });
      response.writeHead(201).end('ä');
    });
    const call = { method: 'PUT', path: '/a?b=c', headers: { Authorization: 'Bearer x' }, body: '"ä"' };
    expect(await callHttp(at(stub.address, call))).toEqual({ status: 201, text: 'ä' });
    const headers = { host: stub.address, authorization: 'Bearer x', 'content-length': '4', connection: 'close' };
    expect(requests).toEqual([{ method: 'PUT', url: '/a?b=c', headers }]);
  });

  it('does not follow a redirect', async () => {
    const requests: unknown[] = [];
    await using other = await ApiStub.start((request, response) => {
      requests.push(request.url);
      response.end();
    });
    await using stub = await ApiStub.start((_request, response) => {
      response.writeHead(307, { Location: `http://${other.address}/` }).end();
    });
    expect(await callHttp(at(stub.address))).toEqual({ status: 307, text: '' });
    expect(requests).toEqual([]);
  });

  withIpv6('leaves the zone of an IPv6 address out of the Host header', async () => {
    const hosts: unknown[] = [];
    await using stub = await ApiStub.start(
      ({ headers }, response) => {
        hosts.push(headers.host);
        response.end();
      },
      { host: '::1' },
    );
    await callHttp(at(stub.address.replace('::1', `::1%${LOOPBACK_IPV6}`)));
    expect(hosts).toEqual([stub.address]);
  });

  it.each([
    ['an upgrade', 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'],
    ['an upgrade to nothing', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
  ])('reports the status of %s', async (_what, bytes) => {
    expect(await callBytes(bytes)).toEqual({ status: 101, text: '' });
  });

  it.each([
    ['no HTTP', '\u0015\u0003\u0001\u0000\u0002\u0002P', 'its answer is not HTTP/1.1 (Parse Error: Expected HTTP/'],
    [
      'no chunks',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzz',
      'its answer is not HTTP/1.1 (Parse Error: Invalid character in chunk size)',
    ],
  ])('fails with the reason if the answer is %s', async (_what, bytes, reason) => {
    await expect(callBytes(bytes)).rejects.toThrow(reason);
  });

  it.each([
    ['before the answer', ''],
    ['within the answer', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx'],
  ])('fails if the connection is closed %s', async (_when, bytes) => {
    await using stub = await ApiStub.start(({ socket }) => void socket.end(bytes));
    await expect(callHttp(at(stub.address))).rejects.toThrow(/^other side closed$/);
  });

  it('fails with a reason for every address of a host', async () => {
    function lookUp(
      _host: string,
      _options: unknown,
      found: (error: null, addresses: readonly object[]) => void,
    ): void {
      found(null, [
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ]);
    }
    jest.spyOn(dns, 'lookup').mockImplementation(lookUp as never);
    await expect(callHttp(at('weir:1'))).rejects.toThrow(
      /^connect ECONNREFUSED 127\.0\.0\.1:1; connect E[A-Z]+ ::1:1\b/,
    );
  });
});
