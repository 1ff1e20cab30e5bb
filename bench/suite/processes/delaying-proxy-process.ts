// Forwards connections to a port of 127.0.0.1 and delays replies. Arguments: the port and the delay in ms.
import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { Ticks } from '../load/ticks';

/** Milliseconds between two looks at the replies that are due. */
const TICK = 0.1;

const [port, delay] = process.argv.slice(2).map(Number) as [number, number];
const delayed: { readonly due: number; readonly client: Socket; readonly bytes: Buffer }[] = [];
const ticks = new Ticks(TICK, forward);

function forward(): void {
  const now = performance.now();
  let count = 0;
  while (count < delayed.length && delayed[count]!.due <= now) count += 1;
  for (const { client, bytes } of delayed.splice(0, count)) client.write(bytes);
  if (delayed.length === 0) ticks.stop();
}

const server = createServer((client) => {
  const upstream = connect({ port, host: '127.0.0.1', noDelay: true });
  client.setNoDelay();
  for (const socket of [client, upstream]) {
    // 'close' follows.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      client.destroy();
      upstream.destroy();
    });
  }
  client.on('data', (bytes) => upstream.write(bytes));
  upstream.on('data', (bytes) => {
    if (delayed.length === 0) ticks.start();
    delayed.push({ due: performance.now() + delay, client, bytes });
  });
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
// Also when the benchmark was killed.
process.on('disconnect', () => process.exit());
