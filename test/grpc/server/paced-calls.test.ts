import { Stream, type StreamControl } from '../../../src/grpc/http2/streams/stream';
import { BidirectionalCall } from '../../../src/grpc/server/calls/bidirectional-call';
import type { Call, CallContext } from '../../../src/grpc/server/calls/call';
import { ServerStreamingCall } from '../../../src/grpc/server/calls/server-streaming-call';
import { UnaryServerCall } from '../../../src/grpc/server/calls/unary-call';
import { MESSAGE_FAILURES } from '../../../src/grpc/server/calls/call-failures';
import { SingleMessage } from '../../../src/grpc/server/calls/single-message';
import { Inflater } from '../../../src/grpc/server/messages/inflater';
import { prefixed } from './raw-call';
import type { CallHead } from '../../../src/grpc/server/headers/request-interpreter';

/** What the constructors of calls use. */
const CONTROL: Pick<StreamControl<Call>, 'now' | 'expireStreamAt' | 'schedule'> = {
  now: 0,
  expireStreamAt: () => undefined,
  schedule: () => undefined,
};
const HEAD = { path: '/service/Method', encoding: 'identity', timeoutMs: Infinity } as unknown as CallHead;
const CONTEXT = {} as CallContext;

function newStream(): Stream<Call> {
  return new Stream(CONTROL as StreamControl<Call>, 1, 65_535, -1);
}

function unused(): never {
  throw new Error('the call has not been received yet');
}

describe('a message that cannot be decompressed', () => {
  it('is not there any more, so that its call does not count as one that waits to be handled', () => {
    const stream = newStream();
    stream.isClosed = true;
    const message = new SingleMessage(stream, 'gzip');
    expect(message.read(prefixed('not gzip', 1), 0, 13, true)).toBe(true);
    expect([message.hasMessage, message.decompress(new Inflater(() => 0))]).toEqual([true, true]);
    expect([message.hasMessage, message.failure]).toEqual([false, MESSAGE_FAILURES['not gzip']]);
  });
});

describe('the work of a call', () => {
  it('is counted by the pacing of work when the call is unary', () => {
    const stream = newStream();
    stream.state = new UnaryServerCall(CONTEXT, stream, HEAD, unused, false);
    expect(stream.isPaced).toBe(true);
  });

  it.each([
    ['server streaming', (stream: Stream<Call>) => new ServerStreamingCall(CONTEXT, stream, HEAD, unused, false)],
    ['bidirectional', (stream: Stream<Call>) => new BidirectionalCall(CONTEXT, stream, HEAD, unused, false)],
  ])('is not counted when the call is %s: it may stay open for any time', (_, callOn) => {
    const stream = newStream();
    stream.state = callOn(stream);
    expect(stream.isPaced).toBe(false);
  });
});
