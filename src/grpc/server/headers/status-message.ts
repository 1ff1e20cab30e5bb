import { MAX_STATUS_MESSAGE_BYTES } from '../limits';

const PERCENT = 0x25;
const SPACE = 0x20;
const TILDE = 0x7e;

/**
 * Encodes a status message for `grpc-message`: UTF-8, with `%` and every byte that is not visible ASCII as `%XX`. Spaces inside
 * the message are kept; leading and trailing ones are encoded, because no field value may have them. A lone surrogate becomes
 * U+FFFD. Truncated to 1 KiB, never inside a character.
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
  // Truncation may leave spaces at the end.
  return encoded.trimEnd();
}

function encodeCharacter(character: string, isOuter: boolean): string {
  const code = character.codePointAt(0)!;
  if (code > SPACE && code <= TILDE && code !== PERCENT) return character;
  if (code === SPACE && !isOuter) return character;
  let encoded = '';
  for (const byte of Buffer.from(character, 'utf8')) encoded += `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  return encoded;
}
