import { host } from './host';
import { accepted, refused, type ValueType } from './value-type';

/** Where a statistics daemon is: a host, at the port that another setting says, or a stream socket of this machine. */
export type StatisticsHost = { readonly host: string } | { readonly socketPath: string };

const STREAM = 'unixstream://';
/** Bytes that a socket's path may have on Linux; a longer one would be cut without a word. */
const LONGEST_PATH = 107;

export const statisticsHost: ValueType<StatisticsHost> = {
  allowed: `${host.allowed}, or ${STREAM}/path`,
  read(text) {
    if (/^(?:unix|unixgram):/i.test(text)) {
      return refused(
        `datagrams over a Unix socket are not sent; let the daemon listen on a stream socket, ${STREAM}/path`,
      );
    }
    if (text.startsWith(STREAM)) return readPath(text.slice(STREAM.length));
    const reading = host.read(text);
    return 'value' in reading ? accepted({ host: reading.value }) : reading;
  },
  write: (value) => ('host' in value ? value.host : STREAM + value.socketPath),
};

function readPath(socketPath: string) {
  if (!/^\/.*[^/]$/.test(socketPath)) return refused(`a path that begins with / follows ${STREAM}`);
  if (Buffer.byteLength(socketPath) > LONGEST_PATH) return refused(`the path has at most ${LONGEST_PATH} bytes`);
  return accepted({ socketPath });
}
