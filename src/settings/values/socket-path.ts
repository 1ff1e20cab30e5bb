import { type ValueType, accepted, rejected } from './value-type';
import { filePath } from './text';

/** The size of the address of a Unix socket, in bytes, less the byte that ends it. A longer path would be silently truncated. */
const LONGEST = process.platform === 'linux' ? 107 : 103;

/** The hint for a path that is too long. */
export const TOO_LONG = `the path of a socket may have at most ${LONGEST} bytes on this system`;

/** Whether the system would truncate the path of a socket. */
export function isTooLong(path: string): boolean {
  return Buffer.byteLength(path) > LONGEST;
}

/** The path of a Unix socket to listen on. */
export const socketPath: ValueType<string> = {
  ...filePath,
  parse: (path) => (isTooLong(path) ? rejected(TOO_LONG) : accepted(path)),
};
