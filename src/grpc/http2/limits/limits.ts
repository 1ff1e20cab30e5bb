/** A token bucket: `burst` tokens at first and at most, refilled at `perSecond`. */
export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** What a peer may use of the server. Fields that end in `Ms` are milliseconds, in `Bytes` bytes; the others are counts. */
export interface Limits {
  /** Open connections. A connection over the limit is closed when it is accepted. */
  readonly maxConnections: number;
  /** SETTINGS_MAX_CONCURRENT_STREAMS. A stream counts until it is closed and its work has ended, even if its caller has left. */
  readonly maxConcurrentStreams: number;
  /** The least to which the number of running streams, on all connections, is limited while this process has more work than time. */
  readonly pacedStreams: number;
  /** Calls of one connection that start in one turn of the event loop; the others start in later turns. */
  readonly dispatchesPerTurn: number;
  /** The time after which no further call of a connection starts in a turn, from the beginning of its part of the turn. */
  readonly dispatchMs: number;
  /** The time after which no further connection continues in a turn what it left in earlier turns. */
  readonly roundMs: number;

  /** SETTINGS_MAX_HEADER_LIST_SIZE: the bytes of names and values, plus 32 for each field. */
  readonly maxHeaderListBytes: number;
  /** Fields of a header list. */
  readonly maxHeaderFields: number;
  /** CONTINUATION frames of a header block. */
  readonly maxContinuations: number;
  /** Bytes of a header block as sent, CONTINUATION frames included. */
  readonly maxHeaderBlockBytes: number;

  /** The flow-control window of a connection for request bodies. At least 65,535. */
  readonly connectionWindowBytes: number;
  /** Bytes of incomplete requests that are kept for one connection. */
  readonly maxHeldBytesPerConnection: number;
  /** Bytes of incomplete requests that are kept for all connections. */
  readonly maxHeldBytes: number;
  /**
   * While more than half of {@link maxHeldBytes} is in use: how long an incomplete request may take for its next 16 KiB; a
   * quarter of it while all is in use.
   */
  readonly heldStallMs: number;

  /** From accepting the connection to its first SETTINGS, the TLS handshake included. */
  readonly prefaceMs: number;
  /** From our SETTINGS to its acknowledgement. */
  readonly settingsAckMs: number;
  /** From HEADERS to END_HEADERS. */
  readonly headerBlockMs: number;
  /** From a complete response until the peer's window has accepted its last byte, however slowly the window grows. */
  readonly responseMs: number;
  /** The same for each piece of a response that is not complete yet. */
  readonly responsePieceMs: number;
  /** How long the socket may accept no bytes while output is waiting. */
  readonly unreadOutputMs: number;
  /** How long nothing is received before a keepalive PING is sent. */
  readonly keepaliveMs: number;
  /** How long the peer may take to answer a keepalive PING. */
  readonly keepaliveTimeoutMs: number;
  /** How long a connection may have no streams before it is shut down gracefully; Infinity for no limit. */
  readonly maxIdleMs: number;
  /** The age, 10 % more or less, at which a connection is shut down gracefully; Infinity for no limit. */
  readonly maxAgeMs: number;
  /** How long the streams of such a connection may take before they are reset; Infinity for no limit. */
  readonly maxAgeGraceMs: number;
  /** The time between the two GOAWAYs of a graceful shutdown, unless the peer answers the PING between them. */
  readonly goawayMs: number;
  /** How long an ended connection is still read, so that its last frames reach the peer. */
  readonly lingerMs: number;

  /** Bytes waiting for the socket, above which no call is started and nothing is read. */
  readonly softOutputBytes: number;
  /** Bytes waiting for the socket or a window, above which the connection is destroyed. */
  readonly hardOutputBytes: number;
  /** Answers to control frames that wait for the socket. */
  readonly maxUnsentControlFrames: number;

  /** Streams that are reset before their work begins. Each complete response gives one back. */
  readonly resets: Rate;
  /** Stream errors, and frames that cost work without carrying any. */
  readonly faults: Rate;
  /** SETTINGS frames. */
  readonly settings: Rate;
  /** Settings in one frame. */
  readonly settingsEntries: number;
  /** The interval below which a PING counts as a strike. */
  readonly minPingMs: number;
  /** Strikes that are permitted; HEADERS or DATA that we send clear them. */
  readonly pingStrikes: number;
  /** WINDOW_UPDATEs in the life of a connection, in addition to those that {@link windowUpdatesPerUnit} permits. */
  readonly windowUpdates: number;
  /** WINDOW_UPDATEs per unit: a stream opened is one unit, a DATA frame sent is ten. */
  readonly windowUpdatesPerUnit: number;
  /** PRIORITY frames, unknown frames and late frames in the life of a connection, plus one for each stream. More are faults. */
  readonly idleFrames: number;
  /** Bytes by which DATA frames fall short of {@link smallDataBytes}, given back when their message or stream ends. */
  readonly smallData: Rate;
  readonly smallDataBytes: number;
}

const SECOND = 1_000;
const KIB = 1_024;
const MIB = 1_024 * KIB;

export const DEFAULT_LIMITS: Limits = {
  maxConnections: 16_384,
  maxConcurrentStreams: 1_024,
  pacedStreams: 512,
  dispatchesPerTurn: 256,
  dispatchMs: 2,
  roundMs: 4,

  maxHeaderListBytes: 16 * KIB,
  maxHeaderFields: 100,
  maxContinuations: 8,
  maxHeaderBlockBytes: 32 * KIB,

  connectionWindowBytes: MIB,
  maxHeldBytesPerConnection: 16 * MIB,
  maxHeldBytes: 256 * MIB,
  heldStallMs: SECOND,

  prefaceMs: 10 * SECOND,
  settingsAckMs: 10 * SECOND,
  headerBlockMs: 10 * SECOND,
  responseMs: 30 * SECOND,
  responsePieceMs: 60 * SECOND,
  unreadOutputMs: 10 * SECOND,
  keepaliveMs: 300 * SECOND,
  keepaliveTimeoutMs: 20 * SECOND,
  maxIdleMs: Infinity,
  maxAgeMs: Infinity,
  maxAgeGraceMs: Infinity,
  goawayMs: 5 * SECOND,
  lingerMs: SECOND,

  softOutputBytes: MIB,
  hardOutputBytes: 4 * MIB,
  maxUnsentControlFrames: 1_000,

  resets: { burst: 10_000, perSecond: 1_000 },
  faults: { burst: 200, perSecond: 10 },
  settings: { burst: 100, perSecond: 1 },
  settingsEntries: 32,
  minPingMs: 10 * SECOND,
  pingStrikes: 2,
  windowUpdates: 5,
  windowUpdatesPerUnit: 2,
  idleFrames: 100,
  smallData: { burst: 256 * KIB, perSecond: 26 * KIB },
  smallDataBytes: 256,
};
