import { once } from 'node:events';
import { type IncomingHttpHeaders, connect } from 'node:http2';

/**
 * Makes a unary gRPC call with custom headers over `node:http2`. The client does not enforce a deadline itself, so that the service
 * has to.
 *
 * @returns the gRPC status of the call
 */
export async function callByHand(
  address: string,
  path: string,
  message: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const session = connect(`http://${address}`);
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  stream.end(Buffer.concat([prefix, message]));
  let status: unknown;
  for (const event of ['response', 'trailers']) {
    stream.on(event, (received: IncomingHttpHeaders) => (status = received['grpc-status'] ?? status));
  }
  stream.resume();
  await once(stream, 'close');
  session.close();
  return Number(status);
}
