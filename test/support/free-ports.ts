import { once } from 'node:events';
import { createServer } from 'node:net';

/** Ports of 127.0.0.1 that were free a moment ago, for programs that cannot be told to choose one themselves. */
export async function freePorts<const N extends number>(count: N): Promise<Tuple<number, N>> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      return server;
    }),
  );
  const ports = await Promise.all(
    servers.map(async (server) => {
      const address = server.address();
      server.close();
      await once(server, 'close');
      if (address === null || typeof address === 'string') throw new Error('no port');
      return address.port;
    }),
  );
  return ports as Tuple<number, N>;
}

type Tuple<T, N extends number, Made extends T[] = []> = Made['length'] extends N ? Made : Tuple<T, N, [...Made, T]>;
