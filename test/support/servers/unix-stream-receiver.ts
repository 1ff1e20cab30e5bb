import { type StreamOptions, StreamReceiver } from './statsd-receivers';
import { TemporaryFolder } from '../data/temporary-folder';

/** A folder for a socket, which outlives the receivers that listen on it. */
export class SocketFolder extends TemporaryFolder {
  readonly path = this.at('dsd.socket');
}

/** A receiver on a Unix stream socket. */
export class UnixReceiver extends StreamReceiver {
  static async start(path: string, options: StreamOptions = {}): Promise<UnixReceiver> {
    const receiver = new UnixReceiver({ framing: 'packets', ...options });
    await receiver.server.listen(path);
    return receiver;
  }
}
