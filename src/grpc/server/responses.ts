import { encodeBlock, type OutgoingField } from '../http2/hpack/static-table';
import { FIELD_OVERHEAD } from '../http2/hpack/fields';
import { GrpcStatus } from '../method';
import type { StopReason } from '../http2/stream';

/** The size of a request message. Larger messages fail with RESOURCE_EXHAUSTED. */
export const MAX_MESSAGE_BYTES = 4 * 1_024 * 1_024;
/** The length of an encoded status message. */
const MAX_STATUS_MESSAGE_BYTES = 1_024;

/**
 * Encodes a status message for `grpc-message`: UTF-8, with `%` and every byte that is not visible ASCII as `%XX`.
 * Spaces inside the message are kept; leading and trailing ones are encoded, because no field value may have them. A
 * lone surrogate becomes U+FFFD. Truncated to 1 KiB, never inside a character.
 */
function encodeStatusMessage(message: string): string {
  let encoded = '';
  let at = 0;
  for (const character of message) {
    const isOuter = at === 0 || at + character.length === message.length;
    const piece = encodeCharacter(character, isOuter);
    if (encoded.length + piece.length > MAX_STATUS_MESSAGE_BYTES) break;
    encoded += piece;
    at += character.length;
  }
  // Truncation may leave spaces at the end.
  return encoded.trimEnd();
}

function encodeCharacter(character: string, isOuter: boolean): string {
  const isPlain = /^[!-$&-~]$/.test(character) || (character === ' ' && !isOuter);
  return isPlain ? character : encodeURIComponent(character.replace(/\p{Surrogate}/u, '\ufffd'));
}

const HTTP_OK: OutgoingField = [':status', '200'];
const CONTENT_TYPE: OutgoingField = ['content-type', 'application/grpc'];

/** Begins every response that has messages. */
export const RESPONSE_HEADERS = encodeBlock([HTTP_OK, CONTENT_TYPE]);
/** Ends every response that has messages and status OK. */
export const TRAILERS_OK = encodeBlock([['grpc-status', String(GrpcStatus.OK)]]);
/** The Trailers-Only response of a stream that ends with OK and without messages. */
export const TRAILERS_ONLY_OK = encodeBlock([HTTP_OK, CONTENT_TYPE, ['grpc-status', String(GrpcStatus.OK)]]);

function statusFields(status: GrpcStatus, message: string): OutgoingField[] {
  return [
    ['grpc-status', String(status)],
    ...(message === '' ? [] : [['grpc-message', encodeStatusMessage(message)] as const]),
  ];
}

/** A Trailers-Only response that rejects a request, with an HTTP status for clients that do not speak gRPC. */
export function trailersOnly(
  httpStatus: number,
  status: GrpcStatus,
  message: string,
  others: readonly OutgoingField[] = [],
): Buffer {
  return encodeBlock([[':status', String(httpStatus)], CONTENT_TYPE, ...statusFields(status, message), ...others]);
}

/** The status of a call that has failed. */
export interface CallFailure {
  readonly status: GrpcStatus;
  readonly message: string;
  /** Further fields of the response, which follow from the message. */
  readonly fields?: readonly OutgoingField[];
}

let latest:
  { status: GrpcStatus; message: string; isTrailersOnly: boolean; maxListBytes: number; block: Buffer } | undefined;

/**
 * The header block of a failed call. Failures come in series (a store that is down fails every call with the same
 * message), so the last block is cached.
 *
 * @param isTrailersOnly whether the block is the whole response, nothing having been sent before
 * @param maxListBytes the peer's SETTINGS_MAX_HEADER_LIST_SIZE: a message that exceeds it is left out
 */
export function failureBlock(
  { status, message, fields = [] }: CallFailure,
  isTrailersOnly: boolean,
  maxListBytes: number,
): Buffer {
  if (
    latest?.message === message &&
    latest.status === status &&
    latest.isTrailersOnly === isTrailersOnly &&
    latest.maxListBytes === maxListBytes
  ) {
    return latest.block;
  }
  const head = [...(isTrailersOnly ? [HTTP_OK, CONTENT_TYPE] : []), ...fields];
  const full = [...head, ...statusFields(status, message)];
  const block = encodeBlock(listBytes(full) <= maxListBytes ? full : [...head, ...statusFields(status, '')]);
  latest = { status, message, isTrailersOnly, maxListBytes, block };
  return block;
}

/** The size of a header list as SETTINGS_MAX_HEADER_LIST_SIZE counts it (RFC 9113, section 6.5.2). */
function listBytes(fields: readonly OutgoingField[]): number {
  return fields.reduce((sum, [name, value]) => sum + name.length + value.length + FIELD_OVERHEAD, 0);
}

function failure(status: GrpcStatus, message: string): CallFailure {
  return { status, message };
}

/** The statuses with which the server itself ends calls, as the specification of gRPC requires them. */
export const Failure = {
  TOO_LARGE: failure(GrpcStatus.RESOURCE_EXHAUSTED, `message larger than ${MAX_MESSAGE_BYTES} bytes`),
  BAD_FLAG: failure(GrpcStatus.INTERNAL, 'message with a compressed flag other than 0 and 1'),
  TOO_MUCH_MEMORY: failure(GrpcStatus.RESOURCE_EXHAUSTED, 'messages that wait to be handled use too much memory'),
  TOO_MANY_MESSAGES: failure(GrpcStatus.RESOURCE_EXHAUSTED, 'too many messages of streaming calls on this connection'),
  NO_MESSAGE: failure(GrpcStatus.INTERNAL, 'request without a message'),
  SECOND_MESSAGE: failure(GrpcStatus.INTERNAL, 'more than one message in a unary request'),
  TRUNCATED_MESSAGE: failure(GrpcStatus.INTERNAL, 'request ends inside a message'),
  COMPRESSED_AS_IDENTITY: failure(GrpcStatus.INTERNAL, 'compressed message without a grpc-encoding'),
  /** As gRPC's document on compression requires, the response says what is supported. */
  UNKNOWN_ENCODING: {
    ...failure(GrpcStatus.UNIMPLEMENTED, 'unsupported grpc-encoding; only identity and gzip are supported'),
    fields: [['grpc-accept-encoding', 'identity,gzip']],
  },
  NOT_GZIP: failure(GrpcStatus.INTERNAL, 'compressed message is not valid gzip'),
  DEADLINE: failure(GrpcStatus.DEADLINE_EXCEEDED, 'deadline exceeded'),
  SLOW_REQUEST: failure(GrpcStatus.DEADLINE_EXCEEDED, 'request not complete in time'),
  /** The only text about an internal error that a caller receives. */
  INTERNAL_ERROR: failure(GrpcStatus.INTERNAL, 'internal error'),
} as const satisfies Record<string, CallFailure>;

/** The status of a call that the server ends, by the reason. Clients retry UNAVAILABLE. */
export const STOPPED: Readonly<Record<StopReason, CallFailure>> = {
  memory: Failure.TOO_MUCH_MEMORY,
  drain: failure(GrpcStatus.UNAVAILABLE, 'the server is shutting down'),
  grace: failure(GrpcStatus.UNAVAILABLE, 'the server has closed the connection'),
};
