const NAME_OR_IPV4 = /^[\w.-]+$/;
const IPV6 = /^(?=.*:.*:)[\da-fA-F:.]+(?:%[\w.-]+)?$/;
const HOST_PORT = /^(?:\[(?<bracketed>[^\]][^\]:]*:[^\]]*)\]|(?<plain>[^:[\]]*)):(?<port>\d{1,5})$/;

/** A host (IPv6 addresses without brackets; empty when omitted) and a port. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Whether a text can be a host name or an IP address; IPv6 addresses are written without brackets. */
export function isHost(text: string): boolean {
  return NAME_OR_IPV4.test(text) || IPV6.test(text);
}

/** Parses `host:port`, `[IPv6 address]:port` or `:port`; undefined for any other text. */
export function parseHostPort(text: string): HostPort | undefined {
  const parts = HOST_PORT.exec(text)?.groups;
  if (parts === undefined) return undefined;
  const host = parts['bracketed'] ?? parts['plain'] ?? '';
  const port = Number(parts['port']);
  return (host === '' || isHost(host)) && port <= 65_535 ? { host, port } : undefined;
}

/** Parses the address of a server, `host:port` with both parts present; undefined for any other text. */
export function parseServerAddress(text: string): HostPort | undefined {
  const address = parseHostPort(text);
  return address === undefined || address.host === '' || address.port === 0 ? undefined : address;
}

/** `host:port`, with an IPv6 address in brackets. */
export function formatHostPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The address of the other end of a socket, as far as the socket has it. */
interface Peer {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

/**
 * The IP address; an IPv4 address without the prefix `::ffff:`, which it has on a listener for IPv6. Undefined on a
 * Unix socket.
 */
export function ipAddress({ remoteAddress }: Peer): string | undefined {
  return remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '');
}

/** The IP address and the port; undefined on a Unix socket. */
export function peerAddress(peer: Peer): string | undefined {
  const address = ipAddress(peer);
  return address === undefined ? undefined : formatHostPort(address, peer.remotePort ?? 0);
}

/** A peer in log lines: its address and port, or `unix socket`. */
export function nameOfPeer(peer: Peer): string {
  return peerAddress(peer) ?? 'unix socket';
}
