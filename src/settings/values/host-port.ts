import { isHost } from './host';

/** A host (an IPv6 address without its brackets; empty when left out) and a port. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Reads `host:port`, `[IPv6 address]:port` or `:port`; undefined when it is none of these. */
export function parseHostPort(text: string): HostPort | undefined {
  const parts = /^(?:\[(?<bracketed>[^\]]+:[^\]]*)\]|(?<plain>[^:[\]]*)):(?<port>\d{1,5})$/.exec(text)?.groups;
  if (parts === undefined) return undefined;
  const host = parts['bracketed'] ?? parts['plain'] ?? '';
  const port = Number(parts['port']);
  return (host === '' || isHost(host)) && port <= 65535 ? { host, port } : undefined;
}
