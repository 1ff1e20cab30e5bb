import type { RequestHead } from '../http2/request-head';
import {
  GrpcStatus,
  type StreamingMethod,
  type StreamingMethods,
  type UnaryHandler,
  type UnaryMethods,
} from '../method';
import { trailersOnly } from './responses';

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
export function parseTimeout(text: string): number | undefined {
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

export type Route = { readonly kind: 'unary'; readonly handle: UnaryHandler } | StreamingMethod;

/** A call, as its request headers describe it. */
export interface CallHead {
  readonly path: string;
  readonly route: Route;
  /** Milliseconds; Infinity when the caller set no deadline. */
  readonly timeoutMs: number;
  /** Whether messages may be compressed (`grpc-encoding`), which is rejected for those that have the compressed flag. */
  readonly hasEncoding: boolean;
  /** The metadata fields that the server keeps; undefined when the request has none of them. */
  readonly metadata: ReadonlyMap<string, string> | undefined;
}

/** The interpretation of request headers: a call, or the header block of the response that rejects the request. */
export type InterpretedHead = CallHead | Buffer;

const CONTENT_TYPE = 1;
const TIMEOUT = 2;
const ENCODING = 3;
const METADATA = 4;

const GRPC = 'application/grpc';
const UNSUPPORTED_MEDIA_TYPE = trailersOnly(415, GrpcStatus.INVALID_ARGUMENT, 'content-type is not application/grpc');
const METHOD_NOT_ALLOWED = trailersOnly(405, GrpcStatus.INTERNAL, 'gRPC calls must use POST', [['allow', 'POST']]);
const NO_AUTHORITY = trailersOnly(400, GrpcStatus.INTERNAL, ':authority is missing');
const BAD_TIMEOUT = trailersOnly(400, GrpcStatus.INTERNAL, 'malformed grpc-timeout');
const UNIMPLEMENTED = trailersOnly(200, GrpcStatus.UNIMPLEMENTED, 'unknown service or method');

/** `application/grpc`, alone or followed by `+format` or `;parameter`; `application/grpc-web` is another protocol. */
function isGrpc(contentType: string): boolean {
  if (contentType === GRPC) return true;
  if (contentType.slice(0, GRPC.length).toLowerCase() !== GRPC) return false;
  return contentType.length === GRPC.length || contentType[GRPC.length] === '+' || contentType[GRPC.length] === ';';
}

/** Interprets request headers as calls of the methods that the server has. */
export class RequestInterpreter {
  readonly tags: ReadonlyMap<string, number>;
  readonly #routes = new Map<string, Route>();

  /** @param keepMetadata names of the metadata fields to keep, in lower case */
  constructor(unary: UnaryMethods, streaming: StreamingMethods, keepMetadata: readonly string[]) {
    for (const [path, handle] of unary) this.#routes.set(path, { kind: 'unary', handle });
    for (const [path, method] of streaming) this.#routes.set(path, method);
    this.tags = new Map([
      ...keepMetadata.map((name) => [name, METADATA] as const),
      ['content-type', CONTENT_TYPE],
      ['grpc-timeout', TIMEOUT],
      ['grpc-encoding', ENCODING],
    ]);
  }

  interpret(request: RequestHead): InterpretedHead {
    let contentType = '';
    let timeout: string | undefined;
    let hasEncoding = false;
    let metadata: Map<string, string> | undefined;
    for (let at = 0; at < request.count; at += 1) {
      const { name, value } = request.fields[at]!;
      switch (name.tag) {
        case 0:
          break;
        case CONTENT_TYPE:
          contentType = value;
          break;
        case TIMEOUT:
          timeout = value;
          break;
        case ENCODING:
          hasEncoding = value !== 'identity';
          break;
        default: {
          metadata ??= new Map();
          const before = metadata.get(name.text);
          metadata.set(name.text, before === undefined ? value : `${before},${value}`);
        }
      }
    }
    if (request.method !== 'POST') return METHOD_NOT_ALLOWED;
    if (!isGrpc(contentType)) return UNSUPPORTED_MEDIA_TYPE;
    if (request.authority === undefined) return NO_AUTHORITY;
    // The path is not normalised: if only weir did it, a caller could bypass the path rules of a proxy in front of it.
    const route = this.#routes.get(request.path);
    if (route === undefined) return UNIMPLEMENTED;
    const timeoutMs = timeout === undefined ? Infinity : parseTimeout(timeout);
    if (timeoutMs === undefined) return BAD_TIMEOUT;
    return { path: request.path, route, timeoutMs, hasEncoding, metadata };
  }
}
