/** `host:port`, with an IPv6 address in brackets. */
export function addressText(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The address of the other end of a socket, as far as the socket has it. */
interface Peer {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

export function nameOfPeer({ remoteAddress, remotePort }: Peer): string {
  return remoteAddress === undefined ? 'unix socket' : addressText(remoteAddress, remotePort ?? 0);
}
