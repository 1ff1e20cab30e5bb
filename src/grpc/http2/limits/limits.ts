/** A token bucket: `burst` at once, `perSecond` refilled. */
export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** What a peer may ask of the server. Milliseconds, bytes, counts; the README of this folder says what each guards against. */
export interface Limits {
  /** Connections open at once; one more is closed as it comes. */
  readonly maxConnections: number;
  /** SETTINGS_MAX_CONCURRENT_STREAMS. A stream holds its place until its work has ended, also when its caller is gone. */
  readonly maxConcurrentStreams: number;
  /** Calls of one connection that begin in one turn of the event loop; the rest waits for the next. */
  readonly dispatchesPerTurn: number;

  /** SETTINGS_MAX_HEADER_LIST_SIZE: names, values and 32 bytes for each field. */
  readonly maxHeaderListBytes: number;
  readonly maxHeaderFields: number;
  readonly maxContinuations: number;
  /** Bytes of one header block as sent, CONTINUATION included. */
  readonly maxHeaderBlockBytes: number;

  /** How many bytes of request bodies a connection may have under way. At least 65,535. */
  readonly connectionWindowBytes: number;
  /** Bytes of requests not yet whole that are kept for one connection… */
  readonly maxHeldBytesPerConnection: number;
  /** …and for all of them. */
  readonly maxHeldBytes: number;

  /** Accept to first SETTINGS, the TLS handshake included. */
  readonly prefaceMs: number;
  /** Our SETTINGS to its acknowledgement. */
  readonly settingsAckMs: number;
  /** HEADERS to END_HEADERS. */
  readonly headerBlockMs: number;
  /** A whole response ready to its last byte fitting the peer's window, however the window dribbles. */
  readonly responseMs: number;
  /** The same for each piece of a response that goes on. */
  readonly responsePieceMs: number;
  /** How long a peer's socket may take nothing while output waits. */
  readonly unreadOutputMs: number;
  /** A silent connection is asked whether it lives, after this time… */
  readonly keepaliveMs: number;
  /** …and has this long to answer. */
  readonly keepaliveTimeoutMs: number;
  /** A connection without streams is told to go away after this time; Infinity for never. */
  readonly maxIdleMs: number;
  /** A connection is told to go away at this age, 10 % more or less; Infinity for never. */
  readonly maxAgeMs: number;
  /** After that, how long its calls may take before it is cut; Infinity for any time. */
  readonly maxAgeGraceMs: number;
  /** Between the two GOAWAYs of a graceful end, unless the peer answers the PING in between. */
  readonly goawayMs: number;
  /** How long a connection that has said goodbye is still read, so that the goodbye arrives. */
  readonly lingerMs: number;

  /** Output waiting for the socket: above it no call is dispatched and nothing is read. */
  readonly softOutputBytes: number;
  /** Output waiting for the socket or the window: above it the connection ends. */
  readonly hardOutputBytes: number;
  /** Answers to control frames that wait for the socket. */
  readonly maxUnsentControlFrames: number;

  /** Streams reset before their work began; each call answered gives one more. */
  readonly resets: Rate;
  /** Stream errors and frames that cost work and carry none. */
  readonly faults: Rate;
  readonly settings: Rate;
  readonly settingsEntries: number;
  /** PINGs closer than this are strikes… */
  readonly minPingMs: number;
  /** …of which so many are borne; whatever we send clears them. */
  readonly pingStrikes: number;
  /** WINDOW_UPDATEs in a connection's life: this, and {@link windowUpdatesPerUnit} for each stream and ten for each DATA frame sent. */
  readonly windowUpdates: number;
  readonly windowUpdatesPerUnit: number;
  /** PRIORITY, unknown and belated frames in a connection's life: this and one for each stream; more are faults. */
  readonly idleFrames: number;
  /** What DATA frames under {@link smallDataBytes} lack to that size, until the message or the stream they belong to ends. */
  readonly smallData: Rate;
  readonly smallDataBytes: number;
}

const SECOND = 1_000;
const KIB = 1_024;
const MIB = 1_024 * KIB;

export const DEFAULT_LIMITS: Limits = {
  maxConnections: 16_384,
  maxConcurrentStreams: 1_024,
  dispatchesPerTurn: 256,

  maxHeaderListBytes: 16 * KIB,
  maxHeaderFields: 100,
  maxContinuations: 8,
  maxHeaderBlockBytes: 32 * KIB,

  connectionWindowBytes: MIB,
  maxHeldBytesPerConnection: 16 * MIB,
  maxHeldBytes: 256 * MIB,

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
