import { Http2Connection } from './http2-connection';

/**
 * Makes a unary gRPC call with custom headers over `node:http2`. The client does not enforce a deadline itself, so that
 * the service has to.
 *
 * @returns the gRPC status of the call
 */
export async function callByHand(
  address: string,
  path: string,
  message: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  using connection = new Http2Connection(address);
  return await connection.call(path, message, headers).status;
}
