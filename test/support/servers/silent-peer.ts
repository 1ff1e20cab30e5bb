import { createServer } from 'node:net';
import { Arrivals } from '../waiting/arrivals';
import { LocalServer } from './local-server';

/** A server that accepts connections and never responds. */
export class SilentPeer extends LocalServer {
  /** Connections that the client has closed. */
  readonly closed = new Arrivals<void>('the end of a connection');

  private constructor(reads: boolean) {
    super(
      createServer({ pauseOnConnect: !reads }, (socket) => {
        socket.on('close', () => this.closed.add());
        if (reads) socket.resume();
      }),
    );
  }

  /** @param reads whether it reads what it receives */
  static start({ reads = true } = {}): Promise<SilentPeer> {
    return new SilentPeer(reads).listen();
  }
}
