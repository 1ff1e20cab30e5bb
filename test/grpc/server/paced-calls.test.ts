import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { Stream, type StreamControl } from '../../../src/grpc/http2/streams/stream';
import { BidirectionalCall } from '../../../src/grpc/server/calls/bidirectional-call';
import type { Call, CallContext } from '../../../src/grpc/server/calls/call';
import { ServerStreamingCall } from '../../../src/grpc/server/calls/server-streaming-call';
import { UnaryServerCall } from '../../../src/grpc/server/calls/unary-call';
import { MESSAGE_FAILURES } from '../../../src/grpc/server/calls/call-failures';
import { SingleMessage } from '../../../src/grpc/server/calls/single-message';
import { Inflater } from '../../../src/grpc/server/messages/inflater';
import { PREFIX_BYTES } from '../../../src/grpc/server/messages/message-reader';
import { until } from '../../support/waiting/until';
import { prefixed } from './raw-call';
import { GrpcStatus } from '../../../src/grpc/method';
import type { CallHead } from '../../../src/grpc/server/headers/request-interpreter';

/** What the constructors of calls use. */
const CONTROL: Pick<StreamControl<Call>, 'now' | 'expireStreamAt' | 'schedule'> = {
  now: 0,
  expireStreamAt: () => undefined,
  schedule: () => undefined,
};
const HEAD = { path: '/service/Method', encoding: 'identity', timeoutMs: Infinity } as unknown as CallHead;
const CONTEXT = {} as CallContext;

function newStream(control: Partial<StreamControl<Call>> = {}): Stream<Call> {
  return new Stream({ ...CONTROL, ...control } as StreamControl<Call>, 1, 65_535, -1);
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

describe('a message that has to wait', () => {
  /** A message that was received on a connection that keeps it, or not. */
  function received(hold: StreamControl<Call>['hold']): SingleMessage {
    const message = new SingleMessage(newStream({ hold }), 'identity');
    message.read(prefixed('text'), 0, PREFIX_BYTES + 4, true);
    return message;
  }

  it('is kept and counted', () => {
    const hold = jest.fn((_stream: Stream<Call>, _bytes: number) => true);
    const message = received(hold);
    expect([message.keep(), message.hasMessage]).toEqual([true, true]);
    expect(hold.mock.calls).toEqual([[expect.any(Stream), 4]]);
  });

  it('is dropped without memory for it', () => {
    const message = received(() => false);
    expect([message.keep(), message.hasMessage, message.failure]).toEqual([
      false,
      false,
      MESSAGE_FAILURES['too much memory'],
    ]);
  });

  it('may be abandoned while room is made for it, because that has ended its connection', () => {
    const message = received(() => {
      message.abandon();
      return true;
    });
    expect([message.keep(), message.hasMessage]).toEqual([true, false]);
  });
});

describe('a message that is decompressed in a thread', () => {
  it('is dropped when there is no memory for the result', async () => {
    const bytes = gzipSync(randomBytes(200_000));
    // There is memory for the compressed message only.
    const hold = jest.fn(() => false).mockReturnValueOnce(true);
    const schedule = jest.fn();
    const message = new SingleMessage(newStream({ hold, releaseHeld: () => undefined, schedule }), 'gzip');
    message.read(prefixed(bytes, 1), 0, PREFIX_BYTES + bytes.length, true);
    expect(message.decompress(new Inflater(() => 0))).toBe(false);
    await until('it is decompressed', () => schedule.mock.calls.length > 0);
    expect([message.hasMessage, message.failure]).toEqual([false, MESSAGE_FAILURES['too much memory']]);
  });

  it.each([
    ['when there is no memory for the result', randomBytes(200_000), [GrpcStatus.RESOURCE_EXHAUSTED]],
    ['but not when it is invalid', undefined, []],
  ])('ends its call before it is handled %s', async (_, content, statuses) => {
    const bytes = content === undefined ? randomBytes(200_000) : gzipSync(content);
    const hold = jest.fn(() => false).mockReturnValueOnce(true);
    const schedule = jest.fn();
    const stream = newStream({ hold, releaseHeld: () => undefined, schedule });
    jest.spyOn(stream, 'requestCompleted').mockImplementation();
    jest.spyOn(stream, 'release').mockImplementation();
    jest.spyOn(stream, 'sendTrailers').mockImplementation();
    const unhandled = jest.fn();
    const context = { inflater: new Inflater(() => 0), failures: { of: () => [] } } as unknown as CallContext;
    const handle = Object.assign(() => undefined, { unhandled });
    const call = new UnaryServerCall(context, stream, { ...HEAD, encoding: 'gzip' }, handle, false);
    call.data(prefixed(bytes, 1), 0, PREFIX_BYTES + bytes.length, true);
    schedule.mockClear();
    call.run();
    await until('it is decompressed', () => schedule.mock.calls.length > 0);
    call.run();
    expect(unhandled.mock.calls).toEqual(statuses.map((status) => [call, status]));
  });
});

describe('a complete request for which there is no memory', () => {
  it('ends its call before it is handled', () => {
    const stream = newStream({ hold: () => false });
    jest.spyOn(stream, 'requestCompleted').mockImplementation();
    jest.spyOn(stream, 'sendTrailers').mockImplementation();
    const unhandled = jest.fn();
    const context = { failures: { of: () => [] } } as unknown as CallContext;
    const handle = Object.assign(() => undefined, { unhandled });
    const call = new UnaryServerCall(context, stream, { ...HEAD, encoding: 'gzip' }, handle, false);
    const message = prefixed(gzipSync('text'), 1);
    call.data(message, 0, message.length, true);
    expect(unhandled.mock.calls).toEqual([[call, GrpcStatus.RESOURCE_EXHAUSTED]]);
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
