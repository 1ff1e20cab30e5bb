/** The constants of RFC 9113. */

/** Frame types (section 6). */
export const FrameType = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

/** Flags (section 6). 0x1 means END_STREAM on DATA and HEADERS, ACK on SETTINGS and PING. */
export const Flag = { END_STREAM: 0x1, ACK: 0x1, END_HEADERS: 0x4, PADDED: 0x8, PRIORITY: 0x20 } as const;

/** Error codes (section 7). */
export const ErrorCode = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  SETTINGS_TIMEOUT: 4,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 10,
  ENHANCE_YOUR_CALM: 11,
  INADEQUATE_SECURITY: 12,
  HTTP_1_1_REQUIRED: 13,
} as const;
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

/** Settings (section 6.5.2; the last one is from RFC 9218). */
export const Setting = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
  NO_RFC7540_PRIORITIES: 9,
} as const;

/** The connection preface, which a client sends before its first frame (section 3.4). */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export const FRAME_HEADER_BYTES = 9;
/** The initial SETTINGS_MAX_FRAME_SIZE (section 6.5.2). The server never changes it and never sends a longer frame. */
export const MAX_FRAME_BYTES = 16_384;
/** The initial flow-control window of a connection and of its streams (section 6.9.2). */
export const DEFAULT_WINDOW_BYTES = 65_535;
/** The maximum of a flow-control window (section 6.9.1), and the highest stream identifier. */
export const MAX_31_BITS = 0x7fff_ffff;
/** The initial SETTINGS_HEADER_TABLE_SIZE (section 6.5.2). The server never changes its own. */
export const DEFAULT_HEADER_TABLE_BYTES = 4_096;
