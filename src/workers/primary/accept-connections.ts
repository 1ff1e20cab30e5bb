import { type AddressInfo, type Socket, createServer } from 'node:net';
import { type ListenAddress, type TcpAddress, listen } from '../../net/listen';

/** A listener of which another process serves the connections. */
export interface Acceptor<Address = AddressInfo | string> {
  readonly address: Address;
  /** Accepts no more connections; those that were accepted are not affected. */
  close(): void;
}

export interface AcceptorOptions<At> {
  readonly at: At;
  /** How many connections may wait to be accepted; Node's default if undefined. */
  readonly backlog?: number | undefined;
  /** Called with each connection, from which nothing is read. */
  readonly onConnection: (socket: Socket) => void;
  readonly onError: (error: Error) => void;
}

/**
 * Opens a listener that reads nothing from its connections, so that they can be passed on.
 *
 * @throws when the address cannot be listened on, with a human-readable message
 */
export function acceptConnections(options: AcceptorOptions<TcpAddress>): Promise<Acceptor<AddressInfo>>;
export function acceptConnections(options: AcceptorOptions<ListenAddress>): Promise<Acceptor>;
export async function acceptConnections({
  at,
  backlog,
  onConnection,
  onError,
}: AcceptorOptions<ListenAddress>): Promise<Acceptor> {
  const server = createServer({ pauseOnConnect: true, noDelay: true }, onConnection);
  const address = await listen(server, at, backlog);
  server.on('error', onError);
  return { address, close: () => server.close() };
}
