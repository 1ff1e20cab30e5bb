import { once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { Subject } from 'rxjs';
import type { ListenerName, Passed, SocketNotice } from '../../../src/workers/messages';
import { ConnectionDispatch } from '../../../src/workers/primary/connection-dispatch';
import type { Responsiveness } from '../../../src/workers/primary/responsiveness';
import type { WorkerExit, WorkerProcess } from '../../../src/workers/primary/worker-process';

/** A worker that takes sockets only when the test says so. */
class FakeWorker {
  readonly passed: (Passed & { readonly socket: Socket })[] = [];
  readonly notices$ = new Subject<SocketNotice>();
  readonly exited$ = new Subject<WorkerExit>();
  readonly responsiveness$ = new Subject<Responsiveness>();

  pass(passed: Passed, socket: Socket): void {
    this.passed.push({ ...passed, socket });
  }

  end(): void {
    this.exited$.next({ code: null, signal: 'SIGKILL' });
  }
}

let ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  ends = [];
});

/** A dispatch with its listener, which accepts a connection of its own for each call of `accept`. */
async function start(maxGrpcConnections = 100) {
  const serving$ = new Subject<WorkerProcess>();
  const refused: string[] = [];
  const unavailable: Socket[] = [];
  const dispatch = new ConnectionDispatch({
    pool: { serving$ },
    maxGrpcConnections,
    onRefused: (listener, bound) => refused.push(`${listener} ${bound}`),
    serveUnavailable: (socket) => unavailable.push(socket),
  });
  ends.push(() => dispatch.close());
  const server = createServer({ pauseOnConnect: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => server.close());
  return {
    dispatch,
    refused,
    unavailable,
    begin: (): FakeWorker => {
      const worker = new FakeWorker();
      serving$.next(worker as unknown as WorkerProcess);
      return worker;
    },
    /** @returns the accepted socket */
    accept: async (listener: ListenerName): Promise<Socket> => {
      const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
      ends.push(() => client.destroy());
      const [socket] = (await once(server, 'connection')) as [Socket];
      ends.push(() => socket.destroy());
      dispatch.accepted(listener, socket);
      return socket;
    },
  };
}

describe('the dispatch of connections', () => {
  it('keeps its copy of a socket until the worker has taken it', async () => {
    const { accept, begin } = await start();
    const worker = begin();
    const socket = await accept('grpc');
    expect(worker.passed).toEqual([{ id: 1, listener: 'grpc', socket }]);
    expect(socket.destroyed).toBe(false);
    worker.notices$.next({ taken: 1 });
    expect(socket.destroyed).toBe(true);
  });

  it('gives the sockets that a worker has not taken to another one when it ends', async () => {
    const { accept, begin, dispatch } = await start();
    const [one, other] = [begin(), begin()];
    const sockets = [await accept('grpc'), await accept('grpc'), await accept('grpc')];
    one.notices$.next({ taken: 1 });
    one.end();
    expect(other.passed.map(({ socket }) => sockets.indexOf(socket))).toEqual([1, 2]);
    expect(dispatch.count('grpc')).toBe(2);
  });

  it('counts a connection until the worker reports its end', async () => {
    const { accept, begin, dispatch } = await start();
    const worker = begin();
    await accept('grpc');
    await accept('http');
    worker.notices$.next({ taken: 1 });
    expect([dispatch.count('grpc'), dispatch.count('http')]).toEqual([1, 1]);
    worker.notices$.next({ closed: 1 });
    expect([dispatch.count('grpc'), dispatch.count('http')]).toEqual([0, 1]);
  });

  it('gives connections to the others while a worker does not answer', async () => {
    const { accept, begin } = await start();
    const [one, other] = [begin(), begin()];
    one.responsiveness$.next('silent');
    for (let round = 0; round < 3; round += 1) await accept('grpc');
    expect([one.passed.length, other.passed.length]).toEqual([0, 3]);
    one.responsiveness$.next('responsive');
    for (let round = 0; round < 3; round += 1) await accept('grpc');
    expect([one.passed.length, other.passed.length]).toEqual([3, 3]);
  });

  it('refuses gRPC connections over the limit', async () => {
    const { accept, begin, refused } = await start(1);
    begin();
    await accept('grpc');
    const second = await accept('grpc');
    expect([refused, second.destroyed]).toEqual([['grpc connections'], true]);
  });

  it('lets gRPC connections wait for the first worker', async () => {
    const { accept, begin, dispatch } = await start();
    const socket = await accept('grpc');
    expect([socket.destroyed, dispatch.count('grpc')]).toEqual([false, 1]);
    const worker = begin();
    expect(worker.passed.map((passed) => passed.socket)).toEqual([socket]);
    expect(dispatch.count('grpc')).toBe(1);
  });

  it('closes gRPC connections that have waited too long', async () => {
    const { accept, dispatch } = await start();
    const socket = await accept('grpc');
    await once(socket, 'close');
    expect(dispatch.count('grpc')).toBe(0);
  });

  it('serves HTTP connections itself while there is no worker', async () => {
    const { accept, unavailable } = await start();
    const socket = await accept('http');
    expect(unavailable).toEqual([socket]);
  });

  it('is settled when every socket is taken', async () => {
    const { accept, begin, dispatch } = await start();
    const worker = begin();
    await accept('grpc');
    await accept('http');
    const events: string[] = [];
    const settled = dispatch.settled('grpc').then(() => events.push('settled'));
    worker.notices$.next({ taken: 2 });
    await new Promise((resolve) => setImmediate(resolve));
    events.push('taken');
    worker.notices$.next({ taken: 1 });
    await settled;
    expect(events).toEqual(['taken', 'settled']);
  });

  it('is settled after a second although a worker does not take its socket', async () => {
    const { accept, begin, dispatch } = await start();
    begin();
    const socket = await accept('grpc');
    await dispatch.settled('grpc');
    expect([socket.destroyed, dispatch.count('grpc')]).toEqual([false, 1]);
  });
});
