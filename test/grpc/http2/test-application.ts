import { encodeBlock } from '../../../src/grpc/http2/hpack/static-table';
import { Http2Server, type Http2ServerOptions } from '../../../src/grpc/http2/server';
import type { Application } from '../../../src/grpc/http2/streams/application';
import type { Stream } from '../../../src/grpc/http2/streams/stream';
import { type ListenAddress, listen } from '../../../src/net/listen';

const HEAD = encodeBlock([[':status', '200']]);

/** A request and its body so far. */
type TestState = { readonly path: string; readonly body: Buffer[] };

/**
 * An application controlled by the path of the request: `/` responds with a few bytes, `/big/n` with n bytes, `/hold` works
 * until {@link finish} and ignores cancellation, `/early` responds before the end of the request, `/keep` accounts for its body
 * as kept memory, `/messages` treats each DATA frame as a complete message, `/blocked` consumes nothing of its body.
 */
export class TestApplication implements Application<string, TestState> {
  readonly tags = new Map([['x-tag', 7]]);
  readonly oversized = encodeBlock([[':status', '431']]);
  /** The paths that were interpreted. A request whose interpretation was remembered is not among them. */
  readonly interpreted: string[] = [];
  opened = 0;
  running = 0;
  mostRunning = 0;
  runs = 0;
  /** How often it was notified that a stream waits. */
  waited = 0;
  cancelled = 0;
  notifiedGoingAway = 0;
  timesDisplaced = 0;
  bodies: string[] = [];
  readonly held: Stream<TestState>[] = [];

  interpret({ path }: { path: string }): string {
    this.interpreted.push(path);
    return path;
  }

  open(stream: Stream<TestState>, path: string, isEnded: boolean): void {
    this.opened += 1;
    stream.state = { path, body: [] };
    if (path === '/early') this.#answer(stream, 'early');
    else if (isEnded) stream.schedule();
  }

  data(stream: Stream<TestState>, source: Buffer, start: number, end: number, isEnded: boolean): void {
    const { path, body } = stream.state!;
    if (path === '/blocked') return;
    body.push(Buffer.from(source.subarray(start, end)));
    if (path === '/keep' && !stream.hold(end - start)) return stream.reset(11);
    if (path === '/messages') stream.messageEnded();
    stream.consumed(end - start);
    if (!isEnded) return;
    stream.requestCompleted();
    stream.schedule();
  }

  run(stream: Stream<TestState>): void {
    this.runs += 1;
    this.running += 1;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    const { path, body } = stream.state!;
    this.bodies.push(Buffer.concat(body).toString('latin1'));
    if (path === '/hold') this.held.push(stream);
    else this.finish(stream, path.startsWith('/big/') ? 'x'.repeat(Number(path.slice(5))) : 'weir');
  }

  /** Ends the work of a `/hold` request with a response. */
  finish(stream: Stream<TestState>, text: string): void {
    this.running -= 1;
    stream.release();
    this.#answer(stream, text);
  }

  waits(): void {
    this.waited += 1;
  }
  cancel(): void {
    this.cancelled += 1;
  }
  displaced(): void {
    this.timesDisplaced += 1;
  }
  goingAway(): void {
    this.notifiedGoingAway += 1;
  }
  expire(): void {}
  drained(): void {}

  #answer(stream: Stream<TestState>, text: string): void {
    stream.sendHeaders(HEAD);
    stream.sendData(Buffer.from(text));
    stream.end();
  }
}

export type TestServer = Http2Server<string, TestState>;

type Options = Partial<Http2ServerOptions<string, TestState>> & { readonly at?: ListenAddress | undefined };

/** An HTTP/2 server that listens, on a port that the system chooses, and serves a {@link TestApplication}, unless given. */
export async function startServer({ at = { host: '127.0.0.1', port: 0 }, ...more }: Options = {}): Promise<TestServer> {
  const server = new Http2Server({ application: new TestApplication(), ...more });
  await listen(server.listener, at);
  return server;
}
