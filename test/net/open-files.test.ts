import net from 'node:net';
import { once } from 'node:events';
import { type ConnectionKind, OpenFiles } from '../../src/net/open-files';

/** A connection whose use is set by the test. */
class FakeConnection {
  readonly socket = new net.Socket();
  hasGivenWay = false;
  wasUsed = true;

  constructor(public idleSince: number | undefined) {}

  giveWay(): void {
    this.hasGivenWay = true;
    this.socket.destroy();
  }
}

/** Of 100 descriptors, a quarter is left free, gRPC leaves 18 more and HTTP 6. `others` are no connections. */
function filesWith({ others }: { readonly others: number }) {
  let read = 0;
  const connections: FakeConnection[] = [];
  const files = new OpenFiles(100, () => {
    read += 1;
    return others + connections.filter(({ socket }) => !socket.destroyed).length;
  });
  function open(kind: ConnectionKind, idleSince?: number, { wasUsed = true } = {}) {
    const connection = new FakeConnection(idleSince);
    connection.wasUsed = wasUsed;
    connections.push(connection);
    const isAdmitted = files.admit(connection.socket, kind, connection);
    if (!isAdmitted) connection.socket.destroy();
    return Object.assign(connection, { isAdmitted });
  }
  return { files, open, timesRead: () => read };
}

test('a new connection takes the place of the idlest of all listeners, those that have sent nothing for a second first', () => {
  const { open } = filesWith({ others: 50 });
  const now = performance.now();
  const used = open('grpc', now - 9_000);
  const idlest = open('operators', now - 9_500);
  const busy = open('http');
  const silent = open('grpc', now - 8_000, { wasUsed: false });
  const laterSilent = open('http', now - 7_000, { wasUsed: false });
  const young = open('http', now, { wasUsed: false });
  const order: FakeConnection[] = [];
  for (let more = 0; more < 5; more += 1) {
    expect(open('grpc').isAdmitted).toBe(true);
    const all = [used, idlest, busy, silent, laterSilent, young];
    order.push(...all.filter((each) => each.hasGivenWay && !order.includes(each)));
  }
  expect(order).toEqual([silent, laterSilent, idlest, used, young]);
});

test('gRPC connections leave descriptors to HTTP ones, and these to those of operators, when none is idle', () => {
  const { open } = filesWith({ others: 0 });
  function fill(kind: ConnectionKind): number {
    let count = 0;
    while (open(kind).isAdmitted) count += 1;
    return count;
  }
  expect([fill('grpc'), fill('http'), fill('operators'), fill('grpc')]).toEqual([56, 12, 7, 0]);
});

test('a connection that was used since it was found idle stays open', () => {
  const { open } = filesWith({ others: 54 });
  const [first, second] = [open('grpc', 1), open('grpc', 2)];
  expect([open('grpc').isAdmitted, first.hasGivenWay]).toEqual([true, true]);
  second.idleSince = undefined;
  expect([open('grpc').isAdmitted, second.hasGivenWay]).toEqual([false, false]);
});

test('the descriptor of a connection that was closed is free, and one that is admitted again counts once', async () => {
  const { files, open } = filesWith({ others: 55 });
  const only = open('grpc');
  expect(files.admit(only.socket, 'grpc', only)).toBe(true);
  expect(open('grpc').isAdmitted).toBe(false);
  only.socket.destroy();
  await once(only.socket, 'close');
  expect(open('grpc').isAdmitted).toBe(true);
});

test('the other descriptors are read at intervals, not for each connection', () => {
  const { open, timesRead } = filesWith({ others: 50 });
  for (let count = 0; count < 100; count += 1) open('grpc', count);
  expect(timesRead()).toBeLessThan(10);
});
