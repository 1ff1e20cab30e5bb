import { type HostPort, formatHostPort, isHost, parseHostPort, parseServerAddress } from '../../text/host-port';
import { list } from './lists';
import { type ValueType, accepted, anyText, filePath, refined, rejected, textLike } from './value-type';

/** A host name or an IP address. */
export const hostName = refined(anyText('host name or IP address'), (host) =>
  isHost(host) ? accepted(host) : rejected('write it without port, scheme or brackets'),
);

/** A name that a certificate has. */
export const certificateName = textLike(
  /^(?=.{1,253}$)(?:\*\.)?[\w-]{1,63}(?:\.[\w-]{1,63})*$|^[\da-f.]*:[\da-f:.]+$/i,
  'DNS name or IP address',
);

/** Names in requests; `*.` stands for any labels. */
export const hostNames = list('host names, or *.domain', (name) => /^(?:\*\.)?[\w-]+(?:\.[\w-]+)*$/.test(name));

/** An instance, or a name in DNS that has the addresses of all, and whether it is called over TLS. */
const PEER = /^(?<dns>dns:)?(?:http(?<tls>s)?:\/\/)?(?<server>.+)$/;

/** An address in OPERATOR_PEERS; undefined for any other text. */
export function parsePeer(text: string) {
  const { dns, tls, server = '' } = PEER.exec(text)?.groups ?? {};
  const address = parseServerAddress(server);
  return address && { text, ...address, isDns: dns !== undefined, isTls: tls !== undefined };
}

export const peerAddresses = list(
  'host:port, https://host:port or dns:name:port',
  (item) => parsePeer(item) !== undefined,
);

export const instanceName = textLike(/^[\w.:-]{1,64}$/, '1 to 64 letters, digits, ., _, : and -');

/** The address of a listener in Go's form: `:9090` means every address. */
export const listenAddress: ValueType<HostPort> = {
  allowed: '[host]:port',
  parse(text) {
    const address = parseHostPort(text);
    if (address === undefined) return rejected(/^\d+$/.test(text) ? 'write a port alone as :port' : undefined);
    return accepted(address.host === '' ? { ...address, host: '0.0.0.0' } : address);
  },
  format: ({ host, port }) => formatHostPort(host === '0.0.0.0' ? '' : host, port),
};

/**
 * The address of a gRPC server. gRPC would treat any other scheme as a host name and retry its DNS lookup indefinitely.
 */
export const grpcTarget = refined(anyText('host:port, dns:///host:port or unix:path'), (target) => {
  const { host = '', port = 0 } = parseHostPort(target.replace(/^dns:(?:\/\/[^/]*\/)?/, '')) ?? {};
  return (host !== '' && port > 0) || /^unix:.+$/.test(target) ? accepted(target) : rejected();
});

/**
 * The size of the address of a Unix socket, in bytes, less the byte that ends it. A longer path would be silently
 * truncated.
 */
const LONGEST = process.platform === 'linux' ? 107 : 103;

/** The hint for a path that is too long. */
const TOO_LONG = `the path of a socket may have at most ${LONGEST} bytes on this system`;

/** Whether the system would truncate the path of a socket. */
function isTooLong(path: string): boolean {
  return Buffer.byteLength(path) > LONGEST;
}

/** The path of a Unix socket to listen on. */
export const listenPath = refined(filePath, (path) => (isTooLong(path) ? rejected(TOO_LONG) : accepted(path)));

/** The address of a statistics daemon: a host, whose port is a setting of its own, or a local Unix socket. */
export type StatisticsHost = { readonly host: string } | StatisticsSocket;

export interface StatisticsSocket {
  readonly socketPath: string;
  readonly socketType: SocketType;
}

type SocketType = 'datagram' | 'stream';

/** The schemes of the Datadog clients; `unix://`, a datagram socket, is the default of the Datadog agent. */
const SCHEMES: ReadonlyMap<string, SocketType> = new Map([
  ['unix://', 'datagram'],
  ['unixgram://', 'datagram'],
  ['unixstream://', 'stream'],
]);
export const statisticsHost: ValueType<StatisticsHost> = {
  allowed: `${hostName.allowed}, unix:///path or unixstream:///path`,
  parse(text) {
    for (const [scheme, socketType] of SCHEMES) {
      if (text.startsWith(scheme)) return parseSocket(text.slice(scheme.length), socketType);
    }
    if (/^(?:unix(?:gram|stream)?:|\/)/.test(text)) {
      return rejected('write a socket as unix:///path or unixstream:///path');
    }
    const result = hostName.parse(text);
    return 'value' in result ? accepted({ host: result.value }) : result;
  },
  format: (value) =>
    'host' in value ? value.host : `${value.socketType === 'stream' ? 'unixstream' : 'unix'}://${value.socketPath}`,
};

function parseSocket(socketPath: string, socketType: SocketType) {
  if (!/^\/.*[^/]$/.test(socketPath)) return rejected('write the absolute path of a socket after the scheme');
  if (isTooLong(socketPath)) return rejected(TOO_LONG);
  return accepted({ socketPath, socketType });
}

/** Whether an address is the path of a Unix socket. */
export function isSocketPath(address: string): boolean {
  return /^(?:unix:)?(?:\/\/)?\//.test(address);
}

/** Whether a text is the address of a server: host:port, or the path of a socket. */
export function isServer(text: string): boolean {
  return parseServerAddress(text) !== undefined || isSocketPath(text);
}

/** Whether a text is the address of a Redis or Valkey server, which may also be a `redis://` or `rediss://` URL. */
export function isStoreAddress(text: string): boolean {
  return isServer(text) || (/^rediss?:\/\/[^/]/i.test(text) && URL.canParse(text));
}
