/** A token bucket: `burst` tokens at first and at most, refilled at `perSecond`. */
export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

const SECOND = 1_000;
const KIB = 1_024;
const MIB = 1_024 * KIB;

// Names that end in `Ms` are milliseconds, in `Bytes` bytes; the others are counts.

/** What a peer may use of the server: the limits that a server can be given others of. */
export const DEFAULT_LIMITS = {
  /** Open connections. A connection over the limit is closed when it is accepted. */
  maxConnections: 16_384,
  /**
   * SETTINGS_MAX_CONCURRENT_STREAMS. A stream counts until it is closed and its work has ended, even if its caller has
   * left.
   */
  maxConcurrentStreams: 1_024,
  /** Calls that stay open, of one connection and of all: see {@link Streams.keepOpen}. */
  maxStreamingCallsPerConnection: 100,
  maxStreamingCalls: 10_000,
  /**
   * The least to which the number of running streams, on all connections, is limited while this process has more work
   * than time.
   */
  pacedStreams: 512,
  /** Bytes of incomplete requests that are kept for all connections, and for one. */
  maxHeldBytes: 256 * MIB,
  maxHeldBytesPerConnection: 16 * MIB,
  /**
   * Bytes that arrive while streams wait for others to run, above which they are read nevertheless: of all connections,
   * and of one.
   */
  maxUnreadBytes: 64 * MIB,
  maxUnreadBytesPerConnection: 128 * KIB,
  /** The age, 10 % more or less, at which a connection is shut down gracefully; Infinity for no limit. */
  maxAgeMs: Infinity,
  /** How long the streams of such a connection may take before they are ended; Infinity for no limit. */
  maxAgeGraceMs: Infinity,
  /** How long an ended connection is still read, so that its last frames reach the peer. */
  lingerMs: SECOND,
  /** PINGs in too short an interval that are permitted; HEADERS or DATA that we send clear them. */
  pingStrikes: 2,
};
export type Limits = Readonly<typeof DEFAULT_LIMITS>;

/** The limits that are the same for every server. */
export const LIMITS = {
  /** Calls of one connection that start in one turn of the event loop; the others start in later turns. */
  dispatchesPerTurn: 256,
  /**
   * The time after which no further call of a connection starts in a turn, from the beginning of its part of the turn.
   */
  dispatchMs: 2,
  /** The time after which no further connection continues in a turn what it left in earlier turns. */
  roundMs: 4,
  /** The time after which nothing that arrives is read any more in a turn. */
  turnMs: 10,

  /** SETTINGS_MAX_HEADER_LIST_SIZE: the bytes of names and values, plus 32 for each field. */
  maxHeaderListBytes: 16 * KIB,
  /** Fields of a header list. */
  maxHeaderFields: 100,
  /** CONTINUATION frames of a header block. */
  maxContinuations: 8,
  /** Bytes of a header block as sent, CONTINUATION frames included. */
  maxHeaderBlockBytes: 32 * KIB,

  /** The flow-control window of a connection for request bodies. */
  connectionWindowBytes: MIB,
  /**
   * While more than half of {@link Limits.maxHeldBytes} is in use: how long an incomplete request may take for its next
   * 16 KiB.
   */
  heldStallMs: SECOND,

  /** From accepting the connection to its first SETTINGS, the TLS handshake included. */
  prefaceMs: 10 * SECOND,
  /** From our SETTINGS to its acknowledgement. */
  settingsAckMs: 10 * SECOND,
  /** From HEADERS to END_HEADERS. */
  headerBlockMs: 10 * SECOND,
  /** From a complete response until the peer's window has accepted its last byte, however slowly the window grows. */
  responseMs: 30 * SECOND,
  /** The time for each piece of an incomplete response until the peer's window has accepted its last byte. */
  responsePieceMs: 60 * SECOND,
  /** How long the socket may accept no bytes while output is waiting. */
  unreadOutputMs: 10 * SECOND,
  /** How long nothing is received before a keepalive PING is sent. */
  keepaliveMs: 300 * SECOND,
  /** How long the peer may take to answer a keepalive PING. */
  keepaliveTimeoutMs: 20 * SECOND,
  /** The time between the two GOAWAYs of a graceful shutdown, unless the peer answers the PING between them. */
  goawayMs: 5 * SECOND,

  /** Bytes waiting for the socket, above which no call is started and nothing is read. */
  softOutputBytes: MIB,
  /** Bytes waiting for the socket or a window, above which the connection is destroyed. */
  hardOutputBytes: 4 * MIB,
  /** Answers to control frames that wait for the socket. */
  maxUnsentControlFrames: 1_000,

  /** Streams that are reset before their work begins. Each complete response gives one back. */
  resets: { burst: 10_000, perSecond: 1_000 },
  /** Stream errors, and frames that cost work without carrying any. */
  faults: { burst: 200, perSecond: 10 },
  /** SETTINGS frames. */
  settings: { burst: 100, perSecond: 1 },
  /** Settings in one frame. */
  settingsEntries: 32,
  /** The interval below which a PING counts as a strike. */
  minPingMs: 10 * SECOND,
  /**
   * WINDOW_UPDATEs in the life of a connection, in addition to those that {@link LIMITS.windowUpdatesPerUnit} permits.
   */
  windowUpdates: 5,
  /** WINDOW_UPDATEs per unit: a stream opened is one unit, a DATA frame sent is ten. */
  windowUpdatesPerUnit: 2,
  /**
   * PRIORITY frames, unknown frames and late frames in the life of a connection, plus one for each stream. More are
   * faults.
   */
  idleFrames: 100,
  /**
   * Bytes by which DATA frames fall short of {@link LIMITS.smallDataBytes}, given back when their message or stream
   * ends.
   */
  smallData: { burst: 256 * KIB, perSecond: 26 * KIB },
  smallDataBytes: 256,
  /** Messages of calls that send any number of them. */
  messages: { burst: 100, perSecond: 10 },
} as const;

/**
 * Every kind of rejection, by the name it is counted under. The server counts a rejection once, under the kind that
 * names its cause. Regular ends of a connection (the client closes it, the server drains) are not rejections.
 */
export const REJECTIONS = [
  /** A connection over {@link Limits.maxConnections}. */
  'connections',
  /** A connection that the server's caller rejects, because too few file descriptors are free. */
  'file_descriptors',
  /** A connection that the server's caller closes, because more arrive than it can pass on to other processes. */
  'hand_over',
  /**
   * A TLS handshake that failed: no common protocol, a missing or bad client certificate, no TLS at all, or too slow.
   */
  'tls_handshake',
  /** A TLS client that offered no ALPN protocol, or whose certificate does not carry the required name. */
  'tls_client',
  /** The preface and the first SETTINGS did not arrive in time. */
  'preface_timeout',
  /** The peer did not acknowledge our SETTINGS in time. */
  'settings_timeout',
  /** A header block that did not end in time. */
  'header_timeout',
  /** A request that did not end in time. */
  'request_timeout',
  /** A peer that did not answer a keepalive PING. */
  'keepalive_timeout',
  /** A response that waited too long for the peer's flow-control window. */
  'response_timeout',
  /** A peer that does not read our output: too much of it is waiting, or the peer has read none for too long. */
  'slow_reader',
  /** A request that needed too much memory, or whose memory was needed for other connections. */
  'request_memory',
  /** A connection error: framing, stream states, sizes. */
  'protocol_error',
  /** A header block that HPACK cannot decode. */
  'compression_error',
  /** A flow-control window that was exceeded or overflowed, of a stream or the connection. */
  'flow_control_error',
  /** A stream error: a frame that the state of its stream does not allow. */
  'stream_error',
  /** A malformed request (RFC 9113, section 8.1.1). */
  'malformed',
  /** A stream over MAX_CONCURRENT_STREAMS. */
  'streams',
  /** A streaming call over {@link Limits.maxStreamingCallsPerConnection} or {@link Limits.maxStreamingCalls}. */
  'streaming_calls',
  /** Too many messages of streaming calls on one connection. */
  'streaming_messages',
  /** Too many CONTINUATION frames, or a header block that is too long. */
  'header_block',
  /** A header list with too many bytes or fields. */
  'header_list',
  /** Too many streams that were opened and reset before their work began (CVE-2023-44487). */
  'rapid_reset',
  /** Too many stream errors, and frames that cost work without carrying any (CVE-2025-8671). */
  'faults',
  /** Too many SETTINGS frames, or too many settings in one. */
  'settings_flood',
  /** More PINGs than keepalive requires. */
  'ping_flood',
  /** Too many answers to control frames that the peer does not read. */
  'control_flood',
  /** More WINDOW_UPDATEs than the DATA sent can explain. */
  'window_update_flood',
  /** Messages sent in very small DATA frames. */
  'data_dribble',
] as const;
export type Rejection = (typeof REJECTIONS)[number];

/** The address of a peer, as a socket has it; undefined on a Unix socket. */
export interface Peer {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

/**
 * Called once for each connection, stream or request that is rejected, before its socket is closed. `reason` is what is
 * wrong in particular, for logs; empty if the kind says everything.
 */
export type OnRejected = (kind: Rejection, peer: Peer, reason: string) => void;
