import { crc32 } from 'node:zlib';
import { DecisionError } from '../../../limiter/decision-error';

const MAX_KEY_BYTES = 250;
const FIRST_LEGAL = 0x21;
const DELETE = 0x7f;

/**
 * A key as memcached receives it: its bytes in UTF-8, one character for each. This form is written as Latin-1, and the server returns
 * it.
 */
export type WireKey = string;

/**
 * Converts a key, with the rules of the Go service's client: at most 250 bytes, without blanks and control characters. The server would
 * take what follows a blank for another word of the command, and what follows a line end for another command.
 *
 * @throws DecisionError `invalid_request` for any other key
 */
export function wireKey(key: string): WireKey {
  if (key.length <= MAX_KEY_BYTES && isPlain(key)) return key;
  const wire = Buffer.from(key, 'utf8').toString('latin1');
  if (wire.length > MAX_KEY_BYTES) {
    throw illegalKey(`has ${wire.length} bytes, and memcached allows ${MAX_KEY_BYTES}`);
  }
  for (let index = 0; index < wire.length; index += 1) {
    const byte = wire.charCodeAt(index);
    if (byte < FIRST_LEGAL || byte === DELETE) {
      throw illegalKey('contains white space or a control character, which memcached does not allow');
    }
  }
  return wire;
}

/** Whether every character is a legal one of ASCII, as in most keys: they are their own wire form. */
function isPlain(key: string): boolean {
  for (let index = 0; index < key.length; index += 1) {
    const code = key.charCodeAt(index);
    if (code < FIRST_LEGAL || code >= DELETE) return false;
  }
  return true;
}

function illegalKey(problem: string): DecisionError {
  return new DecisionError('invalid_request', `the key of a counter ${problem}`);
}

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
