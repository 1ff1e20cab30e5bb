import { type ValueType, accepted, refused } from './value-type';
import { textLike } from './text';
const NAME_OR_IPV4 = /^[\w.-]+$/;
const IPV6 = /^(?=.*:.*:)[\da-fA-F:.]+(?:%[\w.-]+)?$/;

/** Whether a text can be a host name or an IP address; an IPv6 address stands without brackets. */
export function isHost(text: string): boolean {
  return NAME_OR_IPV4.test(text) || IPV6.test(text);
}

/** A host name or an IP address. */
export const hostName: ValueType<string> = {
  allowed: 'host name or IP address',
  read: (text) => (isHost(text) ? accepted(text) : refused('without port, scheme or brackets')),
  write: (value) => value,
};

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

/** Where to listen, as Go writes it: `:9090` is every address. */
export const listenAddress: ValueType<HostPort> = {
  allowed: '[host]:port',
  read(text) {
    const address = parseHostPort(text);
    if (address === undefined)
      return refused(/^\d+$/.test(text) ? 'a port alone is written with a colon before it' : undefined);
    return accepted(address.host === '' ? { ...address, host: '0.0.0.0' } : address);
  },
  write: ({ host, port }) => `${host.includes(':') ? `[${host}]` : host === '0.0.0.0' ? '' : host}:${port}`,
};

const socket = textLike(/^unix:.+$/, 'socket');

/** Where a gRPC server is. A target of another scheme would be taken for a host name, and looked up in vain for ever. */
export const grpcTarget: ValueType<string> = {
  allowed: 'host:port, dns:///host:port or unix:path',
  read(given) {
    if ('value' in socket.read(given)) return accepted(given);
    const address = parseHostPort(given.replace(/^dns:(?:\/\/[^/]*\/)?/, ''));
    return address !== undefined && address.host !== '' ? accepted(given) : refused();
  },
  write: (target) => target,
};

/** Where a statistics daemon is: a host, at the port that another setting says, or a socket of this machine. */
export type StatisticsHost = { readonly host: string } | StatisticsSocket;

export interface StatisticsSocket {
  readonly socketPath: string;
  readonly socketType: SocketType;
}

type SocketType = 'datagram' | 'stream';

/** As the clients of Datadog write them; `unix://` is where its agent listens when not told otherwise. */
const SCHEMES: ReadonlyMap<string, SocketType> = new Map([
  ['unix://', 'datagram'],
  ['unixgram://', 'datagram'],
  ['unixstream://', 'stream'],
]);
/** Bytes that a socket's path may have on Linux; a longer one would be cut without a word. */
const LONGEST_PATH = 107;

export const statisticsHost: ValueType<StatisticsHost> = {
  allowed: `${hostName.allowed}, unix:///path or unixstream:///path`,
  read(text) {
    for (const [scheme, socketType] of SCHEMES) {
      if (text.startsWith(scheme)) return readSocket(text.slice(scheme.length), socketType);
    }
    if (/^(?:unix(?:gram|stream)?:|\/)/.test(text))
      return refused('a socket is written unix:///path or unixstream:///path');
    const reading = hostName.read(text);
    return 'value' in reading ? accepted({ host: reading.value }) : reading;
  },
  write: (value) =>
    'host' in value ? value.host : `${value.socketType === 'stream' ? 'unixstream' : 'unix'}://${value.socketPath}`,
};

function readSocket(socketPath: string, socketType: SocketType) {
  if (!/^\/.*[^/]$/.test(socketPath)) return refused('a path that begins with / follows the scheme');
  if (Buffer.byteLength(socketPath) > LONGEST_PATH) return refused(`the path has at most ${LONGEST_PATH} bytes`);
  return accepted({ socketPath, socketType });
}

/** Whether an address is the path of a Unix socket. */
export function isSocketPath(address: string): boolean {
  return /^(?:unix:)?(?:\/\/)?\//.test(address);
}

/** Whether a text names a server by host and port, both given. */
export function isServer(text: string): boolean {
  const address = parseHostPort(text);
  return address !== undefined && address.host !== '' && address.port > 0;
}

/** Whether a text is an address of a key-value store: host:port, a socket's path, or a `redis://` or `rediss://` URL. */
export function isStoreAddress(text: string): boolean {
  return isServer(text) || isSocketPath(text) || (/^rediss?:\/\/[^/]/i.test(text) && URL.canParse(text));
}
