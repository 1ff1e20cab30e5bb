import type { NetConnectOpts } from 'node:net';
import { connect } from 'node:tls';
import { startReplyTimer } from '../../net/reply-timer';

/**
 * Whether a server answers a TLS handshake within some milliseconds, if only with an alert. Its certificate does not matter, because
 * nothing is sent.
 */
export function speaksTls(server: NetConnectOpts, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ ...server, ALPNProtocols: ['h2'], rejectUnauthorized: false });
    const stopTimer = startReplyTimer(timeoutMs, () => end(false));
    function end(isTls: boolean): void {
      stopTimer();
      socket.destroy();
      resolve(isTls);
    }
    socket.once('secureConnect', () => end(true));
    // An alert is an answer, for example that a client certificate is required.
    socket.on('error', (error) => end(/alert/.test(error.message)));
    socket.once('close', () => end(false));
  });
}
