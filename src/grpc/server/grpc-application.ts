import type { RequestHead } from '../http2/request-head';
import type { Application } from '../http2/streams/application';
import type { Stream } from '../http2/streams/stream';
import { GrpcStatus, type StreamingMethods, type UnaryMethods } from '../method';
import { BidirectionalCall } from './calls/bidirectional-call';
import type { Call, CallContext } from './calls/call';
import { ServerStreamingCall } from './calls/server-streaming-call';
import { UnaryServerCall } from './calls/unary-call';
import { type CallHead, type InterpretedHead, RequestInterpreter } from './requests';
import { trailersOnly } from './responses';

/** gRPC over HTTP/2 (PROTOCOL-HTTP2.md of the gRPC project), as an application of the HTTP/2 server. */
export class GrpcApplication implements Application<InterpretedHead, Call> {
  readonly #context: CallContext;
  readonly tags: ReadonlyMap<string, number>;
  readonly oversized = trailersOnly(431, GrpcStatus.RESOURCE_EXHAUSTED, 'request header list too large');
  readonly #interpreter: RequestInterpreter;

  constructor(context: CallContext, unary: UnaryMethods, streaming: StreamingMethods, keepMetadata: readonly string[]) {
    this.#context = context;
    this.#interpreter = new RequestInterpreter(unary, streaming, keepMetadata);
    this.tags = this.#interpreter.tags;
  }

  interpret(request: RequestHead): InterpretedHead {
    return this.#interpreter.interpret(request);
  }

  open(stream: Stream<Call>, head: InterpretedHead, isEnded: boolean): void {
    if (Buffer.isBuffer(head)) stream.sendTrailers(head);
    else stream.state = this.#begin(stream, head, isEnded);
  }

  data(stream: Stream<Call>, source: Buffer, start: number, end: number, isEnded: boolean): void {
    stream.state!.data(source, start, end, isEnded);
  }

  run(stream: Stream<Call>): void {
    stream.state!.run();
  }

  waits(stream: Stream<Call>): void {
    // A call of a bidirectional method is scheduled while it is being opened.
    stream.state?.waits();
  }

  cancel(stream: Stream<Call>): void {
    stream.state?.cancel('cancelled');
  }

  expire(stream: Stream<Call>): void {
    stream.state!.expire();
  }

  displaced(stream: Stream<Call>): void {
    stream.state!.displaced();
  }

  drained(stream: Stream<Call>): void {
    stream.state!.drained();
  }

  goingAway(stream: Stream<Call>): void {
    stream.state?.goingAway();
  }

  #begin(stream: Stream<Call>, head: CallHead, isEnded: boolean): Call {
    const context = this.#context;
    const { route } = head;
    if (route.kind === 'unary') return new UnaryServerCall(context, stream, head, route.handle, isEnded);
    if (route.kind === 'server streaming') return new ServerStreamingCall(context, stream, head, route.handle, isEnded);
    return new BidirectionalCall(context, stream, head, route.handle, isEnded);
  }
}
