/** The entries of the static table (RFC 7541, appendix A) in their order: the name, and the value if there is one. */
const ENTRIES = `
  :authority|:method=GET|:method=POST|:path=/|:path=/index.html|:scheme=http|:scheme=https|:status=200|
  :status=204|:status=206|:status=304|:status=400|:status=404|:status=500|accept-charset|
  accept-encoding=gzip, deflate|accept-language|accept-ranges|accept|access-control-allow-origin|age|allow|
  authorization|cache-control|content-disposition|content-encoding|content-language|content-length|
  content-location|content-range|content-type|cookie|date|etag|expect|expires|from|host|if-match|
  if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|link|location|max-forwards|
  proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|server|set-cookie|
  strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate`;

/** The static table. Element n - 1 is entry n. */
export const STATIC_TABLE: readonly (readonly [name: string, value: string])[] = ENTRIES.split('|').map((entry) => {
  const [name = '', value = ''] = entry.trim().split('=');
  return [name, value];
});

/** A field to send: the name in lower case; the value of visible characters, each of which is one byte. */
export type OutgoingField = readonly [name: string, value: string];

/** An integer with a prefix (RFC 7541, section 5.1). */
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
 * Encodes a header block that neither uses nor changes the dynamic table: indices of the static table, and literals
 * without indexing and without Huffman coding. The block is valid on every connection, for any number of responses.
 */
export function encodeBlock(fields: readonly OutgoingField[]): Buffer {
  return Buffer.from(
    fields.flatMap(([name, value]) => {
      const entry = STATIC_TABLE.findIndex((each) => each[0] === name && each[1] === value) + 1;
      if (entry > 0 && value !== '') return integer(entry, 0x7f, 0x80);
      const named = STATIC_TABLE.findIndex((each) => each[0] === name) + 1;
      return [...(named === 0 ? [0, ...string(name)] : integer(named, 0x0f, 0)), ...string(value)];
    }),
  );
}
