import { MAX_STATUS_MESSAGE_BYTES } from '../limits';

const PERCENT = 0x25;
const SPACE = 0x20;
const TILDE = 0x7e;

/**
 * A status message as `grpc-message` carries it: UTF-8, with every byte outside of visible ASCII, and `%`, as `%XX`;
 * spaces at the ends too, which no field value may have. A lone surrogate becomes U+FFFD. Cut at 1 KiB, never inside of a
 * character.
 */
export function encodeStatusMessage(message: string): string {
  let encoded = '';
  let at = 0;
  for (const character of message) {
    const isOuter = at === 0 || at + character.length === message.length;
    const piece = encodeCharacter(character, isOuter);
    if (encoded.length + piece.length > MAX_STATUS_MESSAGE_BYTES) break;
    encoded += piece;
    at += character.length;
  }
  // What the cut left at the end may be a space.
  return encoded.endsWith(' ') ? encoded.slice(0, -1) : encoded;
}

function encodeCharacter(character: string, isOuter: boolean): string {
  const code = character.codePointAt(0)!;
  if (code > SPACE && code <= TILDE && code !== PERCENT) return character;
  if (code === SPACE && !isOuter) return character;
  let encoded = '';
  for (const byte of Buffer.from(character, 'utf8')) encoded += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  return encoded;
}
