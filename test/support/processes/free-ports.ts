import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ephemeral ports, one of which an outgoing connection could take before the port is used. */
const LOWEST = 10_240;
const HIGHEST = 32_000;
/** Test files that run at the same time choose from different ports. */
const SHARES = 8;
const SHARE = Number(process.env['JEST_WORKER_ID'] ?? 0) % SHARES;
/** The ports that were chosen before in this test file, whose programs may not listen yet. */
const chosen = new Set<number>();

/** Ports of 127.0.0.1 that were free a moment ago, for programs that cannot choose one themselves. */
export async function freePorts<const N extends number>(count: N): Promise<Tuple<number, N>> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = LOWEST + SHARES * Math.floor((Math.random() * (HIGHEST - LOWEST)) / SHARES) + SHARE;
    if (chosen.has(port)) continue;
    chosen.add(port);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports] as Tuple<number, N>;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

type Tuple<T, N extends number, Made extends T[] = []> = Made['length'] extends N ? Made : Tuple<T, N, [...Made, T]>;
