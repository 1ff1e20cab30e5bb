const SLOTS_MASK = 0x3fff;
const OPENING = 0x7b;
const CLOSING = 0x7d;

/** CRC-16 as Redis Cluster uses it (XMODEM: polynomial 0x1021, no reflection), for one byte at a time. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  return crc;
});

/**
 * The slot of a key: the CRC of the whole key or, when it has a hash tag, of the text between its first `{` and the next `}`
 * (Redis Cluster specification, hash tags; an empty tag does not count). Keys contain values that callers sent, so tags do
 * occur.
 */
export function keySlot(key: string): number {
  const bytes = Buffer.from(key);
  const opening = bytes.indexOf(OPENING);
  const closing = opening < 0 ? -1 : bytes.indexOf(CLOSING, opening + 1);
  return closing > opening + 1 ? crc16(bytes, opening + 1, closing) : crc16(bytes, 0, bytes.length);
}

function crc16(bytes: Uint8Array, start: number, end: number): number {
  let crc = 0;
  for (let index = start; index < end; index += 1) {
    crc = ((crc << 8) ^ (TABLE[((crc >> 8) ^ (bytes[index] as number)) & 0xff] as number)) & 0xffff;
  }
  return crc & SLOTS_MASK;
}
