import type { RequestHead, RequestInterpreter } from '../http2/header-reader';
import { FieldKind } from '../http2/hpack/fields';
import type { Stream } from '../http2/stream';
import type { RequestMeaning, Streams } from '../http2/streams';
import { GrpcStatus, type StreamingMethod, type StreamingMethods, type UnaryMethods } from '../method';
import type { MethodObserver } from '../method-observer';
import { excerpt } from '../../text/excerpt';
import { visibleLine } from '../../text/visible';
import type { CallContext, CallHead, Encoding } from './call';
import { failureBlock, trailersOnly } from './responses';
import { StreamServerCall } from './stream-call';
import { type UnaryMethod, UnaryServerCall } from './unary-call';

const MAX_DIGITS = 8;

/** Milliseconds per unit, by the letter of the unit (`Timeout` in the specification of gRPC over HTTP/2). */
const UNITS: ReadonlyMap<string, number> = new Map([
  ['H', 3_600_000],
  ['M', 60_000],
  ['S', 1_000],
  ['m', 1],
  ['u', 1e-3],
  ['n', 1e-6],
]);

/** Parses `grpc-timeout` to milliseconds; undefined when it is malformed. 0 is valid: clients send it. */
function parseTimeout(text: string): number | undefined {
  const last = text.length - 1;
  if (last < 1 || last > MAX_DIGITS) return undefined;
  let value = 0;
  for (let at = 0; at < last; at += 1) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  const unit = UNITS.get(text.charAt(last));
  return unit === undefined ? undefined : value * unit;
}

const GRPC = 'application/grpc';
const NOTHING = Buffer.alloc(0);

/** A request that is rejected by its headers. */
function rejected(...response: Parameters<typeof trailersOnly>): RequestMeaning {
  const block = trailersOnly(...response);
  return { open: (streams, stream) => streams.sendTrailers(stream, block) };
}

const { INTERNAL, INVALID_ARGUMENT, RESOURCE_EXHAUSTED } = GrpcStatus;
const UNSUPPORTED_MEDIA_TYPE = rejected(415, INVALID_ARGUMENT, 'content-type is not application/grpc');
const METHOD_NOT_ALLOWED = rejected(405, INTERNAL, 'gRPC calls must use POST', [['allow', 'POST']]);
const NO_AUTHORITY = rejected(400, INTERNAL, ':authority is missing');
const BAD_TIMEOUT = rejected(400, INTERNAL, 'malformed grpc-timeout');
const TOO_MANY_STREAMING_CALLS = rejected(200, RESOURCE_EXHAUSTED, 'too many streaming calls are open');

/** How much of a name is repeated to its caller, in characters. */
const LONGEST_NAME = 128;

/** A call of a method that the server does not have. */
function unknownMethod({ methodUnknown }: CallContext, message: string): RequestMeaning {
  const failure = { status: GrpcStatus.UNIMPLEMENTED, message };
  return {
    open(streams, stream) {
      methodUnknown(message, streams.peer);
      streams.sendTrailers(stream, failureBlock(failure, true, streams.maxHeaderListBytes));
    },
  };
}

/** A method: one of the two handlers. */
interface Method {
  readonly path: string;
  readonly unary?: UnaryMethod;
  readonly streaming?: StreamingMethod;
}

/** A request that is a call of a method. */
class CallRequest implements CallHead, RequestMeaning {
  constructor(
    readonly context: CallContext,
    readonly method: Method,
    readonly timeoutMs: number,
    readonly encoding: Encoding,
    readonly metadata: ReadonlyMap<string, string> | undefined,
  ) {}

  get path(): string {
    return this.method.path;
  }

  open(streams: Streams, stream: Stream, isEnded: boolean): void {
    const { unary, streaming } = this.method;
    if (unary !== undefined) stream.call = new UnaryServerCall(this, unary, streams, stream);
    else if (streams.keepOpen(stream)) stream.call = new StreamServerCall(this, streaming!, streams, stream);
    else return TOO_MANY_STREAMING_CALLS.open(streams, stream, isEnded);
    if (isEnded) stream.call.data(NOTHING, 0, 0, true);
  }
}

/** `application/grpc`, alone or followed by `+format` or `;parameter`; `application/grpc-web` is another protocol. */
function isGrpc(contentType: string): boolean {
  if (contentType === GRPC) return true;
  if (contentType.slice(0, GRPC.length).toLowerCase() !== GRPC) return false;
  return contentType.length === GRPC.length || contentType[GRPC.length] === '+' || contentType[GRPC.length] === ';';
}

/** The methods of a server. */
export interface Methods {
  readonly unary: UnaryMethods;
  readonly streaming?: StreamingMethods | undefined;
  /** Called once for each unary method, with its path. */
  readonly observe?: ((path: string) => MethodObserver) | undefined;
  /** The metadata fields to keep for handlers, in lower case; all others are dropped on arrival. */
  readonly keepMetadata?: readonly string[] | undefined;
}

/**
 * gRPC over HTTP/2 (PROTOCOL-HTTP2.md of the gRPC project): interprets request headers as calls of the methods that the
 * server has.
 */
export class GrpcRequests implements RequestInterpreter {
  readonly oversized = trailersOnly(431, RESOURCE_EXHAUSTED, 'request header list too large');
  readonly #context: CallContext;
  readonly #methods = new Map<string, Method>();
  readonly #services: ReadonlySet<string>;
  readonly #metadata: ReadonlySet<string>;

  constructor(context: CallContext, { unary, streaming, observe, keepMetadata = [] }: Methods) {
    this.#context = context;
    for (const [path, handle] of unary) this.#methods.set(path, { path, unary: { handle, observer: observe?.(path) } });
    for (const [path, method] of streaming ?? []) this.#methods.set(path, { path, streaming: method });
    this.#services = new Set(Array.from(this.#methods.keys(), (path) => path.slice(1, path.lastIndexOf('/'))));
    this.#metadata = new Set(keepMetadata);
  }

  interpret(request: RequestHead): RequestMeaning {
    let contentType = '';
    let timeout: string | undefined;
    let encoding: Encoding = 'identity';
    let metadata: Map<string, string> | undefined;
    for (let at = 0; at < request.count; at += 1) {
      const { name, value } = request.fields[at]!;
      if (name.kind !== FieldKind.REGULAR) continue;
      const { text } = name;
      if (text === 'content-type') contentType = value;
      else if (text === 'grpc-timeout') timeout = value;
      else if (text === 'grpc-encoding') encoding = value === 'identity' || value === 'gzip' ? value : 'unknown';
      else if (this.#metadata.has(text)) {
        metadata ??= new Map();
        const before = metadata.get(text);
        metadata.set(text, before === undefined ? value : `${before},${value}`);
      }
    }
    if (request.method !== 'POST') return METHOD_NOT_ALLOWED;
    if (!isGrpc(contentType)) return UNSUPPORTED_MEDIA_TYPE;
    if (request.authority === undefined) return NO_AUTHORITY;
    // The path is not normalised: if only weir did it, a caller could bypass the path rules of a proxy in front of it.
    const method = this.#methods.get(request.path);
    if (method === undefined) return unknownMethod(this.#context, this.#whyUnknown(request.path));
    const timeoutMs = timeout === undefined ? Infinity : parseTimeout(timeout);
    if (timeoutMs === undefined) return BAD_TIMEOUT;
    return new CallRequest(this.#context, method, timeoutMs, encoding, metadata);
  }

  /** In the words of grpc-go, by which users of other versions of the protocol search. */
  #whyUnknown(path: string): string {
    const end = path.lastIndexOf('/');
    if (end < 1) return `malformed method name: "${named(path)}"`;
    const service = path.slice(1, end);
    if (!this.#services.has(service)) return `unknown service ${named(service)}`;
    return `unknown method ${named(path.slice(end + 1))} for service ${service}`;
  }
}

function named(name: string): string {
  return visibleLine(excerpt(name, LONGEST_NAME));
}
