import { encodeBlock, type OutgoingField } from '../../http2/headers/hpack/encode';
import { FIELD_OVERHEAD } from '../../http2/headers/hpack/field';
import { GrpcStatus } from '../../method';
import { encodeStatusMessage } from './status-message';

const HTTP_OK: OutgoingField = [':status', '200'];
const CONTENT_TYPE: OutgoingField = ['content-type', 'application/grpc'];

/** Begins every answer that has messages. */
export const RESPONSE_HEAD = encodeBlock([HTTP_OK, CONTENT_TYPE]);
/** Ends every answer that is OK. */
export const TRAILERS_OK = encodeBlock([['grpc-status', String(GrpcStatus.OK)]]);
/** The whole answer to a stream that sent OK and no message. */
export const ONLY_OK = encodeBlock([HTTP_OK, CONTENT_TYPE, ['grpc-status', String(GrpcStatus.OK)]]);

function statusFields(status: GrpcStatus, message: string): OutgoingField[] {
  return [
    ['grpc-status', String(status)],
    ...(message === '' ? [] : [['grpc-message', encodeStatusMessage(message)] as const]),
  ];
}

/** A whole answer without messages, over an HTTP status that plain HTTP clients understand. */
export function refusal(
  http: number,
  status: GrpcStatus,
  message: string,
  more: readonly OutgoingField[] = [],
): Buffer {
  return encodeBlock([[':status', String(http)], CONTENT_TYPE, ...statusFields(status, message), ...more]);
}

/**
 * Header blocks of failures. Failures come in series, so the last one is kept: a store that is down fails every call with
 * the same words.
 */
export class FailureBlocks {
  #latest: { status: GrpcStatus; message: string; isWhole: boolean; maxListBytes: number; block: Buffer } | undefined;

  /**
   * @param isWhole the block is the whole answer: nothing has been sent before
   * @param maxListBytes what the peer takes: the message is left out where it does not fit
   */
  of(status: GrpcStatus, message: string, isWhole: boolean, maxListBytes: number): Buffer {
    const latest = this.#latest;
    if (
      latest?.message === message &&
      latest.status === status &&
      latest.isWhole === isWhole &&
      latest.maxListBytes === maxListBytes
    ) {
      return latest.block;
    }
    const head = isWhole ? [HTTP_OK, CONTENT_TYPE] : [];
    const full = [...head, ...statusFields(status, message)];
    const block = encodeBlock(listBytes(full) <= maxListBytes ? full : [...head, ...statusFields(status, '')]);
    this.#latest = { status, message, isWhole, maxListBytes, block };
    return block;
  }
}

function listBytes(fields: readonly OutgoingField[]): number {
  return fields.reduce((sum, [name, value]) => sum + name.length + value.length + FIELD_OVERHEAD, 0);
}
