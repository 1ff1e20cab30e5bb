import { crc32 } from 'node:zlib';
import type { WireKey } from '../protocol/legal-key';

/**
 * The node that holds a key: CRC-32 (IEEE) of its bytes, modulo the number of nodes in their given order. Equal to the client of the
 * Go service, so that both can share the nodes. A node that is away keeps its keys.
 *
 * @param nodes at least one
 */
export function selectNode<T>(key: WireKey, nodes: readonly T[]): T {
  const index = nodes.length === 1 ? 0 : crc32(Buffer.from(key, 'latin1')) % nodes.length;
  return nodes[index]!;
}
