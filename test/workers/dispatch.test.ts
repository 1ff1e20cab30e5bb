import { once } from 'node:events';
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { Subject } from 'rxjs';
import type { ListenerName, Passed, SocketNotice } from '../../src/workers/messages';
import { ConnectionDispatch } from '../../src/workers/primary/connection-dispatch';
import { leastLoaded } from '../../src/workers/primary/least-loaded';
import type { Responsiveness } from '../../src/workers/primary/responsiveness';
import type { WorkerExit, WorkerProcess } from '../../src/workers/primary/worker-process';

describe('the worker for a connection', () => {
  function worker(name: string, grpc: number, http: number, isResponsive = true) {
    return { name, load: { grpc, http }, isResponsive };
  }

  it.each([
    ['the one with the fewest connections of the listener', 'b', [worker('a', 2, 0), worker('b', 1, 9)]],
    ['of several, the one with the fewest in all', 'b', [worker('a', 1, 5), worker('b', 1, 2), worker('c', 2, 0)]],
    ['the first of those that are equal', 'a', [worker('a', 1, 1), worker('b', 1, 1)]],
    ['not one that does not answer', 'b', [worker('a', 0, 0, false), worker('b', 3, 0)]],
    ['one that does not answer if no other does', 'b', [worker('a', 1, 0, false), worker('b', 0, 0, false)]],
    ['none without workers', undefined, []],
  ])('is %s', (_, name, workers) => {
    expect(leastLoaded(workers, 'grpc')?.name).toBe(name);
  });
});

/** A worker that takes sockets only when the test says so. */
class FakeWorker {
  readonly passed: (Passed & { readonly socket: Socket })[] = [];
  readonly notices$ = new Subject<SocketNotice>();
  readonly exited$ = new Subject<WorkerExit>();
  readonly responsiveness$ = new Subject<Responsiveness>();

  pass(passed: Passed, socket: Socket): void {
    this.passed.push({ ...passed, socket });
  }

  get sockets(): readonly Socket[] {
    return this.passed.map(({ socket }) => socket);
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
    counts: () => [dispatch.count('grpc'), dispatch.count('http')],
    begin: (): FakeWorker => {
      const worker = new FakeWorker();
      serving$.next(worker as unknown as WorkerProcess);
      return worker;
    },
    /** @returns the accepted sockets */
    accept: async (...listeners: readonly ListenerName[]): Promise<readonly Socket[]> => {
      const sockets: Socket[] = [];
      for (const listener of listeners) {
        const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
        ends.push(() => client.destroy());
        const [socket] = (await once(server, 'connection')) as [Socket];
        ends.push(() => socket.destroy());
        dispatch.accepted(listener, socket);
        sockets.push(socket);
      }
      return sockets;
    },
  };
}

describe('the dispatch of connections', () => {
  it('keeps its copy of a socket until the worker has taken it, and counts it until the worker reports its end', async () => {
    const { accept, begin, counts } = await start();
    const worker = begin();
    const [socket] = await accept('grpc', 'http');
    expect(worker.passed[0]).toEqual({ id: 1, listener: 'grpc', socket });
    expect([socket?.destroyed, counts()]).toEqual([false, [1, 1]]);
    worker.notices$.next({ taken: 1 });
    expect([socket?.destroyed, counts()]).toEqual([true, [1, 1]]);
    worker.notices$.next({ closed: 1 });
    expect(counts()).toEqual([0, 1]);
  });

  it('gives the sockets that a worker has not taken to one that answers, up to the limit', async () => {
    const { accept, begin, counts, refused } = await start(3);
    const [one, silent, other] = [begin(), begin(), begin()];
    silent.responsiveness$.next('silent');
    const [first, second, third, fourth] = await accept('grpc', 'grpc', 'grpc', 'grpc');
    expect([one.sockets, other.sockets, refused, fourth?.destroyed]).toEqual([
      [first, third],
      [second],
      ['grpc connections'],
      true,
    ]);
    one.notices$.next({ taken: 1 });
    one.exited$.next({ code: null, signal: 'SIGKILL' });
    expect([other.sockets, silent.sockets, counts()]).toEqual([[second, third], [], [2, 0]]);
  });

  it('lets gRPC connections wait for the first worker, but not for long, and serves those of HTTP itself', async () => {
    const { accept, begin, counts, unavailable } = await start();
    const [late] = await accept('grpc');
    await once(late as Socket, 'close');
    const [waiting, http] = await accept('grpc', 'http');
    expect([waiting?.destroyed, counts(), unavailable]).toEqual([false, [1, 0], [http]]);
    expect(begin().sockets).toEqual([waiting]);
  });

  it('is settled when every socket is taken', async () => {
    const { accept, begin, dispatch } = await start();
    const worker = begin();
    const [socket] = await accept('grpc', 'http');
    const events: string[] = [];
    const settled = dispatch.settled('grpc').then(() => events.push('settled'));
    worker.notices$.next({ taken: 2 });
    await new Promise((resolve) => setImmediate(resolve));
    events.push('taken');
    worker.notices$.next({ taken: 1 });
    await settled;
    expect([events, socket?.destroyed]).toEqual([['taken', 'settled'], true]);
  });
});
