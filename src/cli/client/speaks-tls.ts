import { connect } from 'node:tls';

const TIMEOUT = 2000;

/**
 * Whether the server at an address (`host:port` or `unix:/path`) accepts a TLS handshake. Sends nothing else. Undefined for other
 * kinds of addresses.
 */
export function speaksTls(address: string): Promise<boolean | undefined> {
  const path = /^unix:(?<path>.+)$/.exec(address)?.groups?.['path'];
  const { host, port } = /^\[?(?<host>[^/]+?)\]?:(?<port>\d+)$/.exec(address)?.groups ?? {};
  if (path === undefined && host === undefined) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const socket = connect({
      ...(path === undefined ? { host: host!, port: Number(port) } : { path }),
      ALPNProtocols: ['h2'],
      timeout: TIMEOUT,
      // Who the server is does not matter: the question is only whether it is able to answer.
      rejectUnauthorized: false,
    });
    function end(isTls: boolean): void {
      socket.destroy();
      resolve(isTls);
    }
    socket.once('secureConnect', () => end(true));
    socket.once('timeout', () => end(false));
    // An alert is an answer in TLS, for example that a client certificate is required.
    socket.once('error', (error) => end(/alert/.test(error.message)));
    socket.once('close', () => end(false));
  });
}
