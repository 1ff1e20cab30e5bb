import { encodeBlock, type OutgoingField } from '../../http2/headers/hpack/encode';
import { FIELD_OVERHEAD } from '../../http2/headers/hpack/field';
import { GrpcStatus } from '../../method';
import { encodeStatusMessage } from './status-message';

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
  more: readonly OutgoingField[] = [],
): Buffer {
  return encodeBlock([[':status', String(httpStatus)], CONTENT_TYPE, ...statusFields(status, message), ...more]);
}

/** The status of a call that has failed. */
export interface CallFailure {
  readonly status: GrpcStatus;
  readonly message: string;
  /** Further fields of the response, which follow from the message. */
  readonly fields?: readonly OutgoingField[];
}

/**
 * The header blocks of failed calls. Failures come in series (a store that is down fails every call with the same message), so
 * the last block is cached.
 */
export class FailureBlocks {
  #latest:
    { status: GrpcStatus; message: string; isTrailersOnly: boolean; maxListBytes: number; block: Buffer } | undefined;

  /**
   * @param isTrailersOnly whether the block is the whole response, nothing having been sent before
   * @param maxListBytes the peer's SETTINGS_MAX_HEADER_LIST_SIZE: a message that exceeds it is left out
   */
  of({ status, message, fields = [] }: CallFailure, isTrailersOnly: boolean, maxListBytes: number): Buffer {
    const latest = this.#latest;
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
    this.#latest = { status, message, isTrailersOnly, maxListBytes, block };
    return block;
  }
}

/** The size of a header list as SETTINGS_MAX_HEADER_LIST_SIZE counts it (RFC 9113, section 6.5.2). */
function listBytes(fields: readonly OutgoingField[]): number {
  return fields.reduce((sum, [name, value]) => sum + name.length + value.length + FIELD_OVERHEAD, 0);
}
