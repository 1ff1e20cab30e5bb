import type { Application } from '../http2/streams/application';
import type { RequestHead } from '../http2/headers/request-head';
import type { Stream } from '../http2/streams/stream';
import { GrpcStatus, type StreamingMethods, type UnaryMethods } from '../method';
import { BidirectionalCall } from './calls/bidirectional-call';
import type { Call, CallContext } from './calls/call';
import { type Accepted, type Meaning, RequestInterpreter } from './heads/request';
import { refusal } from './heads/responses';
import { ServerStreamingCall } from './calls/server-streaming-call';
import { UnaryServerCall } from './calls/unary-call';

/** gRPC over HTTP/2 (the protocol document of the gRPC project), as an application of our HTTP/2 server. */
export class GrpcApplication implements Application<Meaning, Call> {
  readonly #context: CallContext;
  readonly tags: ReadonlyMap<string, number>;
  readonly oversized = refusal(431, GrpcStatus.RESOURCE_EXHAUSTED, 'request header list too large');
  readonly #interpreter: RequestInterpreter;

  constructor(context: CallContext, unary: UnaryMethods, streaming: StreamingMethods, keepMetadata: readonly string[]) {
    this.#context = context;
    this.#interpreter = new RequestInterpreter(unary, streaming, keepMetadata);
    this.tags = this.#interpreter.tags;
  }

  interpret(request: RequestHead): Meaning {
    return this.#interpreter.interpret(request);
  }

  open(stream: Stream<Call>, meaning: Meaning, isEnded: boolean): void {
    if (Buffer.isBuffer(meaning)) stream.sendTrailers(meaning);
    else stream.state = this.#begin(stream, meaning, isEnded);
  }

  data(stream: Stream<Call>, source: Buffer, start: number, end: number, isEnded: boolean): void {
    stream.state!.data(source, start, end, isEnded);
  }

  run(stream: Stream<Call>): void {
    stream.state!.run();
  }

  cancel(stream: Stream<Call>): void {
    stream.state?.cancel('cancelled');
  }

  expire(stream: Stream<Call>): void {
    stream.state!.expire();
  }

  drained(stream: Stream<Call>): void {
    stream.state!.drained();
  }

  leave(stream: Stream<Call>): void {
    stream.state?.leave();
  }

  #begin(stream: Stream<Call>, accepted: Accepted, isEnded: boolean): Call {
    const context = this.#context;
    const { route } = accepted;
    if (route.kind === 'unary') return new UnaryServerCall(context, stream, accepted, route.handle, isEnded);
    if (route.kind === 'server streaming')
      return new ServerStreamingCall(context, stream, accepted, route.handle, isEnded);
    return new BidirectionalCall(context, stream, accepted, route.handle, isEnded);
  }
}
