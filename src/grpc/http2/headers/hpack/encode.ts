/** A field to send: name in lower case, value of visible bytes, a byte a character. */
export type OutgoingField = readonly [name: string, value: string];

/** Where RFC 7541's static table has the whole field, or its name; what a response needs of it. */
const STATUS_FIELDS: ReadonlyMap<string, number> = new Map([
  ['200', 8],
  ['204', 9],
  ['206', 10],
  ['304', 11],
  ['400', 12],
  ['404', 13],
  ['500', 14],
]);
const STATUS_NAME = 8;
const STATIC_NAMES: ReadonlyMap<string, number> = new Map([
  [':status', STATUS_NAME],
  ['allow', 22],
  ['content-length', 28],
  ['content-type', 31],
]);

function integer(value: number, mask: number, flags: number): number[] {
  if (value < mask) return [flags | value];
  const bytes = [flags | mask];
  let rest = value - mask;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return [...bytes, rest];
}

function string(text: string): number[] {
  return [...integer(text.length, 0x7f, 0), ...Buffer.from(text, 'latin1')];
}

/**
 * A header block that changes no table and needs none but the static one: indices, and literals without indexing, not
 * Huffman coded. The same block serves every connection and every request.
 */
export function encodeBlock(fields: readonly OutgoingField[]): Buffer {
  return Buffer.from(
    fields.flatMap(([name, value]) => {
      const whole = name === ':status' ? STATUS_FIELDS.get(value) : undefined;
      if (whole !== undefined) return integer(whole, 0x7f, 0x80);
      const index = STATIC_NAMES.get(name);
      return [...(index === undefined ? [0, ...string(name)] : integer(index, 0x0f, 0)), ...string(value)];
    }),
  );
}
