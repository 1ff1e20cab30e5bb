import type { AddressInfo, Server } from 'node:net';

export interface ListenOptions {
  /** A name or an address. `0.0.0.0` and the empty text stand for every address of the machine, IPv6 too where it has it. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

/**
 * Starts listening; the address that it became, once it listens.
 *
 * @throws an error whose message is one sentence for the operator.
 */
export async function listen(server: Server, { host, port }: ListenOptions): Promise<AddressInfo> {
  const everywhere = host === '0.0.0.0' || host === '';
  try {
    return await attempt(server, everywhere ? '::' : host, port);
  } catch (cause) {
    if (!everywhere || !lacksIpv6(cause)) throw explained(host, port, cause);
  }
  try {
    return await attempt(server, '0.0.0.0', port);
  } catch (cause) {
    throw explained(host, port, cause);
  }
}

function attempt(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('the server has no address'));
      else resolve(address);
    });
  });
}

function codeOf(error: unknown): string {
  return String(Object(error).code);
}

function lacksIpv6(error: unknown): boolean {
  return ['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EINVAL'].includes(codeOf(error));
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there already',
  EADDRNOTAVAIL: 'this machine has no such address',
  EACCES: 'this process is not allowed to (ports below 1024 need a privilege)',
  ENOTFOUND: 'there is no host of this name',
  EAI_AGAIN: 'the name of the host could not be resolved',
};

function explained(host: string, port: number, cause: unknown): Error {
  const where = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  const reason = REASONS[codeOf(cause)] ?? String(cause);
  return new Error(`cannot listen on ${where}: ${reason}`, { cause });
}
