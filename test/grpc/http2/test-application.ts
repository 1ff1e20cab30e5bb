import type { Application } from '../../../src/grpc/http2/streams/application';
import { encodeBlock } from '../../../src/grpc/http2/headers/hpack/encode';
import type { Stream } from '../../../src/grpc/http2/streams/stream';

const HEAD = encodeBlock([[':status', '200']]);
export const ANSWER = 'weir';

/** A request and its body so far. */
export interface TestState {
  readonly path: string;
  body: Buffer[];
}

/**
 * An application controlled by the path of the request: `/` responds with a few bytes, `/big/n` with n bytes, `/hold` works
 * until {@link finish} and ignores cancellation, `/early` responds before the end of the request, `/keep` accounts for its body
 * as kept memory, `/messages` treats each DATA frame as a complete message.
 */
export class TestApplication implements Application<string, TestState> {
  readonly tags = new Map([['x-tag', 7]]);
  readonly oversized = encodeBlock([[':status', '431']]);
  opened = 0;
  running = 0;
  mostRunning = 0;
  runs = 0;
  /** How often it was told that a stream waits. */
  told = 0;
  cancelled = 0;
  expired = 0;
  notifiedGoingAway = 0;
  timesDisplaced = 0;
  bodies: string[] = [];
  readonly held: Stream<TestState>[] = [];

  interpret({ path }: { path: string }): string {
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
    if (path === '/hold') {
      this.held.push(stream);
      return;
    }
    this.finish(stream, path.startsWith('/big/') ? 'x'.repeat(Number(path.slice(5))) : ANSWER);
  }

  /** Ends the work of a `/hold` request with a response. */
  finish(stream: Stream<TestState>, text: string): void {
    this.running -= 1;
    stream.release();
    this.#answer(stream, text);
  }

  waits(): void {
    this.told += 1;
  }

  cancel(): void {
    this.cancelled += 1;
  }

  expire(): void {
    this.expired += 1;
  }

  displaced(): void {
    this.timesDisplaced += 1;
  }

  drained(): void {}

  goingAway(): void {
    this.notifiedGoingAway += 1;
  }

  #answer(stream: Stream<TestState>, text: string): void {
    stream.sendHeaders(HEAD);
    stream.sendData(Buffer.from(text));
    stream.end();
  }
}
