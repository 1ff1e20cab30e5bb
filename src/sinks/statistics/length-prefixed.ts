import { LARGEST_AGENT_PACKET } from './largest-agent-packet';
import { packets } from './packets';

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
