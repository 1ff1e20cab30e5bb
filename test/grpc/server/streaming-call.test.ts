import { Stream, type StreamControl } from '../../../src/grpc/http2/streams/stream';
import { BidirectionalCall } from '../../../src/grpc/server/calls/bidirectional-call';
import type { Call, CallContext } from '../../../src/grpc/server/calls/call';
import { ServerStreamingCall } from '../../../src/grpc/server/calls/server-streaming-call';
import type { CallHead } from '../../../src/grpc/server/headers/request-interpreter';
import type { CancelCause } from '../../../src/streams/ports/decide';

const CONTROL: Pick<StreamControl<Call>, 'now' | 'expireStreamAt' | 'schedule'> = {
  now: 0,
  expireStreamAt: () => undefined,
  schedule: () => undefined,
};
const HEAD = { path: '/service/Method', encoding: 'identity', timeoutMs: Infinity } as unknown as CallHead;
const CONTEXT = {} as CallContext;

function unused(): never {
  throw new Error('the call has not been received yet');
}

it.each([
  ['server streaming', ServerStreamingCall],
  ['bidirectional', BidirectionalCall],
])('the work of a %s call is cancelled at once when the call is over before it is registered', (_, Kind) => {
  const stream = new Stream<Call>(CONTROL as StreamControl<Call>, 1, 65_535, -1);
  const call = new Kind(CONTEXT, stream, HEAD, unused, false);
  const causes: CancelCause[] = [];
  call.cancel('cancelled');
  call.onCancel({ cancel: (cause) => causes.push(cause) });
  expect(causes).toEqual(['cancelled']);
});
