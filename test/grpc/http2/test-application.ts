import type { RequestInterpreter } from '../../../src/grpc/http2/header-reader';
import { encodeBlock } from '../../../src/grpc/http2/hpack/static-table';
import { ErrorCode } from '../../../src/grpc/http2/protocol';
import { Http2Server, type Http2ServerOptions } from '../../../src/grpc/http2/server';
import type { Call, StopReason, Stream } from '../../../src/grpc/http2/stream';
import type { RequestMeaning, Streams } from '../../../src/grpc/http2/streams';
import { type ListenAddress, listen } from '../../../src/net/listen';

const HEAD = encodeBlock([[':status', '200']]);
const END = encodeBlock([['x-end', '']]);

/** A request and its body so far. */
export class TestCall implements Call {
  readonly body: Buffer[] = [];
  isWaiting = false;

  constructor(
    readonly application: TestApplication,
    readonly path: string,
    readonly streams: Streams,
    readonly stream: Stream,
  ) {}

  data(source: Buffer, start: number, end: number, isEnded: boolean): void {
    const { path, streams, stream } = this;
    if (path === '/blocked') return;
    this.body.push(Buffer.from(source.subarray(start, end)));
    if (path === '/keep' && !streams.hold(stream, end - start)) {
      return streams.reset(stream, ErrorCode.ENHANCE_YOUR_CALM);
    }
    if (path === '/messages') streams.messageEnded(stream);
    streams.consumed(stream, end - start);
    if (!isEnded) return;
    streams.requestCompleted(stream);
    streams.schedule(stream);
  }

  run(): void {
    this.application.run(this);
  }

  waits(): void {
    if (!this.isWaiting) this.application.waited += 1;
    this.isWaiting = true;
  }

  cancel(): void {
    this.application.cancelled += 1;
  }

  stop(reason: StopReason): void {
    this.application.stopped.push(reason);
    if (reason === 'memory') this.streams.stop(this.stream, encodeBlock([[':status', '503']]), reason);
    else if (reason === 'grace') this.streams.reset(this.stream, ErrorCode.CANCEL);
  }

  expire(): void {}
  drained(): void {}

  answer(text: string): void {
    const { streams, stream } = this;
    streams.sendHeaders(stream, HEAD);
    streams.sendData(stream, Buffer.from(text));
    streams.sendTrailers(stream, END);
  }
}

/**
 * An application controlled by the path of the request: `/` responds with a few bytes, `/big/n` with n bytes, `/hold`
 * works until {@link finish} and ignores cancellation, `/open` is a call that stays open, `/early` responds before the
 * end of the request, `/keep` accounts for its body as kept memory, `/messages` treats each DATA frame as a complete
 * message, `/blocked` consumes nothing of its body.
 */
export class TestApplication implements RequestInterpreter {
  readonly oversized = encodeBlock([[':status', '431']]);
  /** The paths that were interpreted. A request whose interpretation was remembered is not among them. */
  readonly interpreted: string[] = [];
  opened = 0;
  running = 0;
  mostRunning = 0;
  runs = 0;
  /** How many calls were notified that they wait. */
  waited = 0;
  cancelled = 0;
  /** Why calls had to end. */
  readonly stopped: StopReason[] = [];
  bodies: string[] = [];
  readonly held: TestCall[] = [];
  /** When each was opened, by the clock of its connection. */
  readonly openedAt: number[] = [];

  interpret({ path }: { path: string }): RequestMeaning {
    this.interpreted.push(path);
    return { open: (streams, stream, isEnded) => this.open(new TestCall(this, path, streams, stream), isEnded) };
  }

  open(call: TestCall, isEnded: boolean): void {
    this.opened += 1;
    this.openedAt.push(call.streams.now);
    call.stream.call = call;
    call.stream.staysOpen = call.path === '/open';
    if (call.path === '/early') call.answer('early');
    else if (isEnded) call.streams.schedule(call.stream);
  }

  run(call: TestCall): void {
    this.runs += 1;
    this.running += 1;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    const { path, body } = call;
    this.bodies.push(Buffer.concat(body).toString('latin1'));
    if (path === '/hold' || path === '/open') this.held.push(call);
    else this.finish(call, path.startsWith('/big/') ? 'x'.repeat(Number(path.slice(5))) : 'weir');
  }

  /** Ends the work of a `/hold` request with a response. */
  finish(call: TestCall, text: string): void {
    this.running -= 1;
    call.streams.release(call.stream);
    call.answer(text);
  }
}

export type TestServer = Http2Server;

type Options = Partial<Http2ServerOptions> & { readonly at?: ListenAddress | undefined };

/**
 * An HTTP/2 server that listens, on a port that the system chooses, and serves a {@link TestApplication}, unless given.
 */
export async function startServer({ at = { host: '127.0.0.1', port: 0 }, ...more }: Options = {}): Promise<TestServer> {
  const server = new Http2Server({ interpreter: new TestApplication(), ...more });
  await listen(server.listener, at);
  return server;
}
