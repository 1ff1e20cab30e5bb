import type { Rate } from '../http2/limits/limits';

const SECOND = 1_000;
const KIB = 1_024;

/** The size of a request message, both as received and decompressed. Larger messages fail with RESOURCE_EXHAUSTED. */
export const MAX_MESSAGE_BYTES = 4 * KIB * KIB;
/** The time to receive the only message of a call without a deadline, from the start of the call. */
export const REQUEST_TIMEOUT_MS = 30 * SECOND;
/** Messages up to this size, compressed and decompressed, are decompressed synchronously; larger ones in a thread. */
export const SYNC_INFLATION_BYTES = 64 * KIB;
/** Concurrent decompressions in threads, of which a connection has at most one. */
export const MAX_INFLATIONS = 4;
/** A message may become this large, and this many times as large as its compressed bytes, without being charged. */
export const FREE_INFLATION = { bytes: 4 * KIB, ratio: 10 } as const;
/** Bytes that the compressed messages of one connection may become larger than that. More fail with RESOURCE_EXHAUSTED. */
export const INFLATION: Rate = { burst: 16 * KIB * KIB, perSecond: 8 * KIB * KIB };
/** Responses of one call that the peer has not read: above this, the next message of the call is not handled. */
export const STREAM_OUTPUT_BYTES = 64 * KIB;
/** Received messages of one call that are not handled yet: above this, the caller gets no WINDOW_UPDATE. */
export const STREAM_INPUT_BYTES = 64 * KIB;
/** The length of an encoded status message. */
export const MAX_STATUS_MESSAGE_BYTES = KIB;
