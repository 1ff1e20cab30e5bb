import { host } from './host';
import { accepted, refused, type ValueType } from './value-type';

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
  allowed: `${host.allowed}, unix:///path or unixstream:///path`,
  read(text) {
    for (const [scheme, socketType] of SCHEMES) {
      if (text.startsWith(scheme)) return readSocket(text.slice(scheme.length), socketType);
    }
    if (/^(?:unix(?:gram|stream)?:|\/)/.test(text))
      return refused('a socket is written unix:///path or unixstream:///path');
    const reading = host.read(text);
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
