/**
 * Every kind of rejection, by the name it is counted under. The server counts a rejection once, under the kind that names
 * its cause. Regular ends of a connection (the client closes it, the server drains) are not rejections.
 */
export const REJECTIONS = [
  /** A connection over {@link Limits.maxConnections}. */
  'connections',
  /** A connection that the server's caller rejects, because too few file descriptors are free. */
  'file_descriptors',
  /** A TLS handshake that failed: no common protocol, a missing or bad client certificate, no TLS at all, or too slow. */
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
 * Called once for each connection, stream or request that is rejected, before its socket is closed. `reason` is what is wrong in
 * particular, for logs; empty if the kind says everything.
 */
export type OnRejected = (kind: Rejection, peer: Peer, reason: string) => void;
