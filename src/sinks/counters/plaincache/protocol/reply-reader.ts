import { excerpt } from '../../../../text/excerpt';

/** A reply that is not one of the protocol: what follows it on the connection cannot be assigned to commands. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** Reads the reply to one exchange, wherever it is split. */
export interface ReplyReader<T> {
  /**
   * How many parts of a long reply are complete; undefined or 0 while there are none. Each part has the whole timeout of an exchange: how
   * long a server takes for many keys does not show that it is away.
   */
  readonly partsRead?: number;

  /**
   * Reads more bytes.
   *
   * @returns the result when the reply is complete; undefined when more is needed
   * @throws {ProtocolError} when the reply is not as expected, or bytes follow it
   */
  read(chunk: Buffer): T | undefined;
}

/** A line of an unexpected reply, for a message; what servers send may be anything. */
export function quoteLine(line: string): string {
  return JSON.stringify(excerpt(line, 60));
}
