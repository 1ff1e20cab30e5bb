const prefix = Buffer.alloc(5);

/** The octets before an uncompressed message of this length; valid until the next call. */
export function writePrefix(length: number): Uint8Array {
  prefix[1] = length >>> 24;
  prefix[2] = length >>> 16;
  prefix[3] = length >>> 8;
  prefix[4] = length;
  return prefix;
}
