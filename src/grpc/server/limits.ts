const SECOND = 1_000;
const KIB = 1_024;

/** A message in, as declared and as inflated (document 3, section 1: more is RESOURCE_EXHAUSTED). */
export const MAX_MESSAGE_BYTES = 4 * KIB * KIB;
/** Begin of a call whose caller set no deadline to the end of its only message. */
export const REQUEST_MS = 30 * SECOND;
/** What may be inflated in the middle of a turn: more goes to a thread. */
export const INLINE_INFLATION_BYTES = 64 * KIB;
/** Inflations in threads at once. */
export const MAX_INFLATIONS = 4;
/** Answers of one call that wait for their reader: above this, the call's next message waits too. */
export const STREAM_OUTPUT_BYTES = 64 * KIB;
/** Messages of one call that wait for their turn: above this, the caller gets no new window. */
export const STREAM_INPUT_BYTES = 64 * KIB;
/** Text of a status, as sent. */
export const MAX_STATUS_MESSAGE_BYTES = KIB;
