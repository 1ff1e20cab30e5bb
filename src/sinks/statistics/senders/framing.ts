/**
 * Bytes that the Datadog agent reads per packet from a Unix socket of either kind, unless its `dogstatsd_buffer_size` is set; it
 * drops what exceeds them.
 */
export const MAX_AGENT_PACKET = 8192;

/** What fits into a datagram over IPv4: 64 KiB less its headers. */
export const MAX_DATAGRAM_LINE = 65_507;

/** Some lines as bytes, joined by newlines. */
export interface Packet {
  readonly bytes: Buffer;
  /** The number of lines, with those before them that were left out. */
  readonly lines: number;
}

/**
 * Packs as many whole lines into each packet as fit into `limit` bytes. A longer line is sent alone, unsplit; one with more than
 * `maxLine` bytes is left out.
 */
export function* packets(lines: readonly string[], limit: number, maxLine = Infinity): Iterable<Packet> {
  let gathered: string[] = [];
  let bytes = 0;
  let leftOut = 0;
  for (const line of lines) {
    const length = Buffer.byteLength(line);
    if (length > maxLine) {
      leftOut += 1;
      continue;
    }
    if (gathered.length > 0 && bytes + 1 + length > limit) {
      yield packetOf(gathered, leftOut);
      gathered = [];
      bytes = 0;
      leftOut = 0;
    }
    bytes += gathered.length === 0 ? length : length + 1;
    gathered.push(line);
  }
  if (gathered.length > 0) yield packetOf(gathered, leftOut);
}

function packetOf(lines: readonly string[], leftOut: number): Packet {
  return { bytes: Buffer.from(lines.join('\n')), lines: lines.length + leftOut };
}

/** Line framing: each line is terminated by a newline. */
export function newlineTerminated(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

/**
 * The Datadog agent's framing on a stream: packets of whole lines, each prefixed with its length in bytes as a 32-bit
 * little-endian number.
 */
export function lengthPrefixed(lines: readonly string[]): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const { bytes } of packets(lines, MAX_AGENT_PACKET)) {
    const prefix = Buffer.allocUnsafe(4);
    prefix.writeUInt32LE(bytes.length);
    parts.push(prefix, bytes);
  }
  return Buffer.concat(parts);
}
