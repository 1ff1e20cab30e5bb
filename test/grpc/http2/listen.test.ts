import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ListenAddress } from '../../../src/grpc/http2/listen';
import { type Http2Server, serveHttp2 } from '../../../src/grpc/http2/server';
import { endedOf, get, hello } from './frames';
import { RawClient, connectPlain } from './raw-client';
import { TestApplication } from './test-application';

function serve(listen: ListenAddress): Promise<Http2Server> {
  return serveHttp2({ listen, application: new TestApplication() });
}

async function expectAnswer(client: RawClient): Promise<void> {
  client.send(hello(), get(1));
  await client.until('an answer', () => endedOf(client.frames).includes(1));
  client.close();
}

jest.setTimeout(30_000);

describe('listening', () => {
  it('on all IPv4 interfaces means those of IPv6 too', async () => {
    for (const host of ['0.0.0.0', '']) {
      const server = await serve({ host, port: 0 });
      const { port } = server.address as net.AddressInfo;
      await expectAnswer(connectPlain(server.address));
      await expectAnswer(new RawClient(net.connect({ host: '::1', port })));
      await server.close();
    }
  });

  it('on one address means that one', async () => {
    const server = await serve({ host: '127.0.0.1', port: 0 });
    const client = new RawClient(net.connect({ host: '::1', port: (server.address as net.AddressInfo).port }));
    await client.until('refusal', () => client.isClosed);

    expect(client.frames).toEqual([]);
    await server.close();
  });

  it('on a port that is taken fails', async () => {
    const server = await serve({ host: '127.0.0.1', port: 0 });
    const { port } = server.address as net.AddressInfo;

    await expect(serve({ host: '127.0.0.1', port })).rejects.toThrow('EADDRINUSE');
    await server.close();
  });
});

describe('listening on a Unix socket', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-listen-'));
  const path = join(folder, 'socket');
  afterAll(() => rmSync(folder, { recursive: true }));

  it('serves there, and removes it at the end', async () => {
    const server = await serve({ path });
    expect(server.address).toBe(path);
    await expectAnswer(connectPlain(path));
    await server.close();

    expect(existsSync(path)).toBe(false);
  });

  it('takes the place of a socket that a dead process left', async () => {
    const leave = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
    spawnSync(process.execPath, ['-e', leave]);
    expect(existsSync(path)).toBe(true);
    const server = await serve({ path });
    await expectAnswer(connectPlain(path));
    await server.close();
  });

  it('does not take the place of a server that lives', async () => {
    const server = await serve({ path });

    await expect(serve({ path })).rejects.toThrow(`cannot listen on ${path}: another process listens there`);
    await expectAnswer(connectPlain(path));
    await server.close();
  });

  it('does not remove a file that is no socket', async () => {
    writeFileSync(path, 'precious');

    await expect(serve({ path })).rejects.toThrow(`cannot listen on ${path}: a file that is no socket is there`);
    rmSync(path);
  });
});
