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
 * @returns the wire form, or what is wrong with the key
 */
export function wireKey(key: string): { readonly wire: WireKey } | { readonly problem: string } {
  if (key.length <= MAX_KEY_BYTES && isPlain(key)) return { wire: key };
  const wire = Buffer.from(key, 'utf8').toString('latin1');
  if (wire.length > MAX_KEY_BYTES) {
    return { problem: `the key of its counter has ${wire.length} bytes, and memcached allows ${MAX_KEY_BYTES}` };
  }
  for (let index = 0; index < wire.length; index += 1) {
    const byte = wire.charCodeAt(index);
    if (byte < FIRST_LEGAL || byte === DELETE) {
      return {
        problem: 'the key of its counter contains white space or a control character, which memcached does not allow',
      };
    }
  }
  return { wire };
}

/** Whether every character is a legal one of ASCII, as in most keys: they are their own wire form. */
function isPlain(key: string): boolean {
  for (let index = 0; index < key.length; index += 1) {
    const code = key.charCodeAt(index);
    if (code < FIRST_LEGAL || code >= DELETE) return false;
  }
  return true;
}
