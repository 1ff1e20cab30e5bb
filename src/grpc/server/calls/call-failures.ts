import { GrpcStatus } from '../../method';
import type { CallFailure } from '../headers/responses';
import { MAX_MESSAGE_BYTES } from '../limits';
import type { ReadFailure } from '../messages/message-reader';

function failure(status: GrpcStatus, message: string): CallFailure {
  return { status, message };
}

/** The status for each problem of a request message, as the specification of gRPC requires. */
export const MESSAGE_FAILURES = {
  'too large': failure(GrpcStatus.RESOURCE_EXHAUSTED, `message larger than ${MAX_MESSAGE_BYTES} bytes`),
  'bad flag': failure(GrpcStatus.INTERNAL, 'message with a compressed flag other than 0 and 1'),
  'too much memory': failure(GrpcStatus.RESOURCE_EXHAUSTED, 'messages that wait to be handled use too much memory'),
} as const satisfies Record<ReadFailure, CallFailure>;

export const NO_MESSAGE = failure(GrpcStatus.INTERNAL, 'request without a message');
export const SECOND_MESSAGE = failure(GrpcStatus.INTERNAL, 'more than one message in a unary request');
export const TRUNCATED_MESSAGE = failure(GrpcStatus.INTERNAL, 'request ends inside a message');
export const DEADLINE = failure(GrpcStatus.DEADLINE_EXCEEDED, 'deadline exceeded');
export const SLOW_REQUEST = failure(GrpcStatus.DEADLINE_EXCEEDED, 'request not complete in time');
/** The only text about an internal error that a caller receives. */
export const INTERNAL_ERROR = failure(GrpcStatus.INTERNAL, 'internal error');
export const SHUTTING_DOWN = failure(GrpcStatus.UNAVAILABLE, 'the server is shutting down');

const COMPRESSED_AS_IDENTITY = failure(GrpcStatus.INTERNAL, 'compressed message without a grpc-encoding');
/** As gRPC's document on compression requires, the response says what is supported. */
const COMPRESSED: CallFailure = {
  ...failure(GrpcStatus.UNIMPLEMENTED, 'compressed messages are not supported'),
  fields: [['grpc-accept-encoding', 'identity']],
};

/** Why a message with the compressed flag is rejected. @param hasEncoding whether its call has a `grpc-encoding` other than identity */
export function compressionFailure(hasEncoding: boolean): CallFailure {
  return hasEncoding ? COMPRESSED : COMPRESSED_AS_IDENTITY;
}
