import { peerAddress } from '../text/host-port';

/** The address of the other end of a socket, for log lines. */
export function nameOfPeer(peer: Parameters<typeof peerAddress>[0]): string {
  return peerAddress(peer) ?? 'unix socket';
}
