/**
 * Bytes that the Datadog agent reads at once from a Unix socket, of either kind, unless its `dogstatsd_buffer_size` says otherwise;
 * more would be lost there.
 */
export const LARGEST_AGENT_PACKET = 8192;
/** Lines as they stand in a stream of bytes: each ends in a newline. */
export function endedLines(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}
export interface Packet {
  readonly bytes: Buffer;
  /** How many lines are in it. */
  readonly lines: number;
}

/** Lines put together, as many whole ones in a packet as there is room for. A line that is too long travels alone, uncut. */
export function* packets(lines: readonly string[], largest: number): Iterable<Packet> {
  let gathered: string[] = [];
  let bytes = 0;
  for (const line of lines) {
    const length = Buffer.byteLength(line);
    if (gathered.length > 0 && bytes + 1 + length > largest) {
      yield packetOf(gathered);
      gathered = [];
      bytes = 0;
    }
    bytes += gathered.length === 0 ? length : length + 1;
    gathered.push(line);
  }
  if (gathered.length > 0) yield packetOf(gathered);
}

function packetOf(lines: readonly string[]): Packet {
  return { bytes: Buffer.from(lines.join('\n')), lines: lines.length };
}

/**
 * Lines as the Datadog agent reads them from a stream: packets of whole lines, each behind its length in bytes as a 32-bit
 * little-endian number.
 */
export function lengthPrefixed(lines: readonly string[]): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const { bytes } of packets(lines, LARGEST_AGENT_PACKET)) {
    const prefix = Buffer.allocUnsafe(4);
    prefix.writeUInt32LE(bytes.length);
    parts.push(prefix, bytes);
  }
  return Buffer.concat(parts);
}
