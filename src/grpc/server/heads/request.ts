import type { RequestHead } from '../../http2/headers/request-head';
import {
  GrpcStatus,
  type StreamingMethod,
  type StreamingMethods,
  type UnaryHandler,
  type UnaryMethods,
} from '../../method';
import { refusal } from './responses';
import { parseTimeout } from './timeout';

export type Route = { readonly kind: 'unary'; readonly handle: UnaryHandler } | StreamingMethod;

/** How the messages of a request that say they are compressed are compressed. */
export type Encoding = 'identity' | 'gzip' | 'unknown';

/** What a request's header list asks for. */
export interface Accepted {
  readonly path: string;
  readonly route: Route;
  /** Milliseconds, Infinity where the caller set no deadline. */
  readonly timeoutMs: number;
  readonly encoding: Encoding;
  /** The fields that the door was told to keep, where there are any. */
  readonly metadata: ReadonlyMap<string, string> | undefined;
}

/** What it comes to: a call, or the header block that refuses it. */
export type Meaning = Accepted | Buffer;

const CONTENT_TYPE = 1;
const TIMEOUT = 2;
const ENCODING = 3;
const KEPT = 4;

const GRPC = 'application/grpc';
const UNSUPPORTED_MEDIA_TYPE = refusal(415, GrpcStatus.INVALID_ARGUMENT, 'content-type is not application/grpc');
const METHOD_NOT_ALLOWED = refusal(405, GrpcStatus.INTERNAL, 'gRPC calls are POST', [['allow', 'POST']]);
const NO_AUTHORITY = refusal(400, GrpcStatus.INTERNAL, ':authority is missing');
const BAD_TIMEOUT = refusal(400, GrpcStatus.INTERNAL, 'malformed grpc-timeout');
const UNIMPLEMENTED = refusal(200, GrpcStatus.UNIMPLEMENTED, 'unknown service or method');

/** `application/grpc`, alone or followed by `+format` or `;parameter`; `application/grpc-web` is another protocol. */
function isGrpc(contentType: string): boolean {
  if (contentType === GRPC) return true;
  if (contentType.slice(0, GRPC.length).toLowerCase() !== GRPC) return false;
  return contentType.length === GRPC.length || contentType[GRPC.length] === '+' || contentType[GRPC.length] === ';';
}

/** Reads header lists as calls of the methods a door serves. */
export class RequestInterpreter {
  readonly tags: ReadonlyMap<string, number>;
  readonly #routes = new Map<string, Route>();

  /** `keep`: names of metadata fields that handlers want to see. */
  constructor(unary: UnaryMethods, streaming: StreamingMethods, keep: readonly string[]) {
    for (const [path, handle] of unary) this.#routes.set(path, { kind: 'unary', handle });
    for (const [path, method] of streaming) this.#routes.set(path, method);
    this.tags = new Map([
      ...keep.map((name) => [name, KEPT] as const),
      ['content-type', CONTENT_TYPE],
      ['grpc-timeout', TIMEOUT],
      ['grpc-encoding', ENCODING],
    ]);
  }

  interpret(request: RequestHead): Meaning {
    let contentType = '';
    let timeout: string | undefined;
    let encoding: Encoding = 'identity';
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
          encoding = value === 'gzip' || value === 'identity' ? value : 'unknown';
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
    // As it stands: what is normalised here and not elsewhere is a way around somebody's rules.
    const route = this.#routes.get(request.path);
    if (route === undefined) return UNIMPLEMENTED;
    const timeoutMs = timeout === undefined ? Infinity : parseTimeout(timeout);
    if (timeoutMs === undefined) return BAD_TIMEOUT;
    return { path: request.path, route, timeoutMs, encoding, metadata };
  }
}
