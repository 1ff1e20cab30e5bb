import { GrpcStatus } from '../../method';
import type { InflationFailure } from './inflater';
import { MAX_MESSAGE_BYTES } from '../limits';
import type { ReadFailure } from './message-reader';
import type { Encoding } from '../heads/request';

/** Why a call failed before its handler had a say. */
export interface CallFailure {
  readonly status: GrpcStatus;
  readonly message: string;
}

function failure(status: GrpcStatus, message: string): CallFailure {
  return { status, message };
}

const TOO_LARGE = failure(GrpcStatus.RESOURCE_EXHAUSTED, `message larger than ${MAX_MESSAGE_BYTES} bytes`);

/** What gRPC's protocol asks for, by what was wrong with a message. */
export const INCOMING_FAILURES = {
  'too large': TOO_LARGE,
  'bad flag': failure(GrpcStatus.INTERNAL, 'message with a flag that is neither 0 nor 1'),
  'too much memory': failure(GrpcStatus.RESOURCE_EXHAUSTED, 'too many unfinished messages'),
  'not gzip': failure(GrpcStatus.INTERNAL, 'message is not gzip'),
} as const satisfies Record<ReadFailure | InflationFailure, CallFailure>;

export const NO_MESSAGE = failure(GrpcStatus.INTERNAL, 'request without a message');
export const SECOND_MESSAGE = failure(GrpcStatus.INTERNAL, 'more than one message in a unary request');
export const CUT_MESSAGE = failure(GrpcStatus.INTERNAL, 'request ends inside a message');
export const DEADLINE = failure(GrpcStatus.DEADLINE_EXCEEDED, 'deadline exceeded');
export const SLOW_REQUEST = failure(GrpcStatus.DEADLINE_EXCEEDED, 'request not complete in time');
/** All that a caller learns of a defect. */
export const DEFECT = failure(GrpcStatus.INTERNAL, 'internal error');
export const LEAVING = failure(GrpcStatus.UNAVAILABLE, 'the server is going away');

const COMPRESSED_AS_IDENTITY = failure(GrpcStatus.INTERNAL, 'compressed message without a grpc-encoding');
const UNKNOWN_ENCODING = failure(
  GrpcStatus.UNIMPLEMENTED,
  'grpc-encoding is not supported, only gzip and identity are',
);

/** Why a compressed message cannot be read, or undefined where it can. */
export function compressionFailure(encoding: Encoding): CallFailure | undefined {
  if (encoding === 'gzip') return undefined;
  return encoding === 'identity' ? COMPRESSED_AS_IDENTITY : UNKNOWN_ENCODING;
}
