import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type StreamOptions, StreamReceiver } from './statsd-receivers';

/** A folder for a socket, which outlives the receivers that listen on it. */
export class SocketFolder implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'weir-statistics-'));
  readonly path = join(this.#folder, 'dsd.socket');

  static make(): Promise<SocketFolder> {
    return Promise.resolve(new SocketFolder());
  }

  [Symbol.asyncDispose](): Promise<void> {
    rmSync(this.#folder, { recursive: true, force: true });
    return Promise.resolve();
  }
}

/** A receiver on a Unix stream socket. */
export class UnixReceiver extends StreamReceiver {
  static async start(path: string, options: StreamOptions = {}): Promise<UnixReceiver> {
    const receiver = new UnixReceiver({ framing: 'packets', ...options });
    await receiver.server.listen(path);
    return receiver;
  }
}
