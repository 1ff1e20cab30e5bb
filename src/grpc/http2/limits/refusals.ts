/**
 * Every kind of thing the server refuses or ends, by the name it is counted under. One refusal counts once, under the
 * kind that names its cause; ordinary ends (a client that leaves, a drain) are not refusals.
 */
export const REFUSALS = [
  /** A connection over {@link Limits.maxConnections}. */
  'connections',
  /** A TLS handshake that failed: no common protocol, no or a bad client certificate, not TLS at all, too slow. */
  'tls_handshake',
  /** A TLS client that offered no ALPN, or a certificate that does not name who may call. */
  'tls_client',
  /** Preface and first SETTINGS not there in time. */
  'preface_timeout',
  /** Our SETTINGS never acknowledged. */
  'settings_timeout',
  /** A header block begun and not ended in time. */
  'header_timeout',
  /** A request begun and not ended in time. */
  'request_timeout',
  /** A peer that no longer answers our PING. */
  'keepalive_timeout',
  /** A response that waited too long for the peer's window. */
  'response_timeout',
  /** A peer that does not read what we send: too much waits, or nothing moves. */
  'slow_reader',
  /** A request that would have kept too much memory while it is not whole. */
  'request_memory',
  /** A connection error: framing, state, sizes. */
  'protocol_error',
  /** HPACK that does not decode. */
  'compression_error',
  /** A flow-control window broken, on a stream or the connection. */
  'flow_control_error',
  /** A stream error: a frame that its stream's state does not allow. */
  'stream_error',
  /** A request that is malformed in the sense of RFC 9113, section 8.1.1. */
  'malformed',
  /** A stream over MAX_CONCURRENT_STREAMS. */
  'streams',
  /** Too many CONTINUATION frames, or too long a header block. */
  'header_block',
  /** A header list over its size or its number of fields. */
  'header_list',
  /** Streams opened and reset before any work began (CVE-2023-44487). */
  'rapid_reset',
  /** Too many errors provoked on streams, and other frames that cost work and carry none (CVE-2025-8671). */
  'faults',
  /** Too many SETTINGS frames, or too long ones. */
  'settings_flood',
  /** More PINGs than keepalive needs. */
  'ping_flood',
  /** Too many answers to control frames that the peer does not read. */
  'control_flood',
  /** More WINDOW_UPDATEs than the DATA sent can explain. */
  'window_update_flood',
  /** Messages dribbled in tiny DATA frames. */
  'data_dribble',
] as const;
export type Refusal = (typeof REFUSALS)[number];
