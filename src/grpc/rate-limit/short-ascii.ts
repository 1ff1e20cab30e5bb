/** Bytes of the longest text for which {@link shortAscii} is the fastest way. */
export const SHORT_TEXT = 24;

/** Reads a short text faster than a call of the decoder; undefined when it is not all ASCII. */
export function shortAscii(bytes: Uint8Array, start: number, end: number): string | undefined {
  let text = '';
  for (let index = start; index < end; index += 1) {
    const byte = bytes[index] as number;
    if (byte > 0x7f) return undefined;
    text += String.fromCharCode(byte);
  }
  return text;
}
