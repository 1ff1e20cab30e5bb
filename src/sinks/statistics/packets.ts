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
