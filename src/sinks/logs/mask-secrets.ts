/** A shorter secret stands in many words by chance, and what is left of them would tell it. */
const SHORTEST = 6;

/**
 * Makes a mask that puts `***` in place of these secrets, however they are written: as they are, escaped in JSON (once or
 * several times) or in a URL, or in base64, as credentials travel in headers.
 */
export function maskSecrets(secrets: readonly string[]): (text: string) => string {
  const forms = [...secrets]
    .filter((secret) => secret.length >= SHORTEST)
    // What holds another one goes as a whole.
    .sort((one, other) => other.length - one.length)
    .flatMap((secret) => [anyEscape(secret), anyEscape(base64(secret))]);
  if (forms.length === 0) return (text) => text;
  const pattern = new RegExp(forms.join('|'), 'g');
  return (text) => text.replace(pattern, '***');
}

function base64(secret: string): string {
  return Buffer.from(secret).toString('base64').replace(/=+$/, '');
}

/** A pattern of the text in which each character may be escaped or not. */
function anyEscape(text: string): string {
  return Array.from(text, (character) => {
    if (/^[\w-]$/.test(character)) return character;
    const inJson = JSON.stringify(character).slice(1, -1);
    const inUrl = Array.from(Buffer.from(character), (byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
    return String.raw`(?:\\*${literal(character)}|\\*${literal(inJson)}|${caseless(inUrl)})`;
  }).join('');
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}

function caseless(hexadecimal: string): string {
  return hexadecimal.replaceAll(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}
