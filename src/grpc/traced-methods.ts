import type { CancelCause } from '../streams/ports/decide';
import type { CallTrace, Tracer } from '../streams/ports/tracer';
import { type Cancellable, GrpcStatus, type UnaryCall, type UnaryHandler, type UnaryMethods } from './method';

/** What is an error of the service and not of the caller, in the eyes of a trace (OpenTelemetry's conventions for RPC). */
const SERVER_ERRORS: ReadonlySet<GrpcStatus> = new Set([
  GrpcStatus.UNKNOWN,
  GrpcStatus.DEADLINE_EXCEEDED,
  GrpcStatus.UNIMPLEMENTED,
  GrpcStatus.INTERNAL,
  GrpcStatus.UNAVAILABLE,
]);

/** Gives the calls that the tracer chooses a span each, named after the method. */
export function tracedMethods(methods: UnaryMethods, tracer: Tracer): UnaryMethods {
  return new Map([...methods].map(([path, handle]) => [path, traced(path, handle, tracer)] as const));
}

function traced(path: string, handle: UnaryHandler, tracer: Tracer): UnaryHandler {
  const name = path.slice(1);
  const [service = '', method = ''] = name.split('/');
  const attributes = { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': method };
  return (message, call) => {
    const trace = tracer.begin(name, attributes, call);
    handle(message, trace === undefined ? call : new TracedCall(call, trace));
  };
}

class TracedCall implements UnaryCall, Cancellable {
  readonly #call: UnaryCall;
  #isOver = false;
  #work: Cancellable | undefined;

  constructor(
    call: UnaryCall,
    readonly trace: CallTrace,
  ) {
    this.#call = call;
  }

  reply(message: Uint8Array): void {
    this.#call.reply(message);
    this.#end(GrpcStatus.OK);
  }

  fail(status: GrpcStatus, message: string): void {
    this.#call.fail(status, message);
    this.#end(status);
  }

  onCancel(work: Cancellable): void {
    this.#work = work;
    this.#call.onCancel(this);
  }

  cancel(cause: CancelCause): void {
    this.#work?.cancel(cause);
    this.#end(cause === 'cancelled' ? GrpcStatus.CANCELLED : GrpcStatus.DEADLINE_EXCEEDED);
  }

  metadata(name: string): string | undefined {
    return this.#call.metadata?.(name);
  }

  #end(status: GrpcStatus): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.trace.ended({ 'rpc.grpc.status_code': status }, SERVER_ERRORS.has(status));
  }
}
