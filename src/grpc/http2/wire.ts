/** What carries a connection: the part of a socket that the connection needs. */
export interface Wire {
  /** Octets given to {@link write} that have not left. */
  readonly writableLength: number;
  /** The octets are the wire's from here on. */
  write(octets: Uint8Array): unknown;
  pause(): unknown;
  resume(): unknown;
  /** Sends what was written, then the end. */
  end(): unknown;
  destroy(): unknown;
}
