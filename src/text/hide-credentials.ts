const HIDDEN = '***';

// A password may hold any character but white space, unescaped slashes and at signs included, so the match extends to
// the last at sign of the word: hiding a host name now and then is better than showing half a password. For a text that
// ends with an at sign: in any other one, each scheme would be followed to the end of the text in vain, which takes
// quadratic time.
const URL_CREDENTIALS = /:\/\/(?<=[a-z][0-9+.-]*:\/\/)(?:[^/@:]*:\S*|[^/@]+)@/gi;

/** Free text with the user and password of every URL in it hidden: `redis://user:secret@host` → `redis://***@host`. */
export function hideUrlCredentials(text: string): string {
  return text.includes('://') ? text.replaceAll(/\S+/g, hideInWord) : text;
}

function hideInWord(word: string): string {
  const end = word.lastIndexOf('@') + 1;
  return word.slice(0, end).replaceAll(URL_CREDENTIALS, `://${HIDDEN}@`) + word.slice(end);
}

/**
 * Text that is one address, or a list of addresses, without users and passwords. Hides more than `hideUrlCredentials`:
 *
 * - everything between the first scheme and the last `@`, because a password may hold commas, slashes and `@` itself;
 * - a query, which may hold a password;
 * - everything after a scheme that is not host and port, because the `@` may have been forgotten.
 */
export function hideAddressCredentials(text: string): string {
  return text
    .replace(/^(?:([a-z]+:\/\/))?[^]*@/i, `$1${HIDDEN}@`)
    .replace(/\?[^]*$/, `?${HIDDEN}`)
    .replace(/:\/\/(?!\*\*\*@|(?:[\w.-]*|\[[\da-f:.]+\])(?::\d{1,5})?(?:[/,?]|$))[^]*$/i, `://${HIDDEN}`);
}

/** Shorter secrets occur in ordinary words by chance; hiding them there would reveal them. */
const MIN_SECRET_LENGTH = 6;

/**
 * Returns a function that replaces known secrets in a text with `***`, in every form they may have there: as they are,
 * escaped in JSON (once or several times) or in a URL, or in base64, as credentials are in headers.
 *
 * @param minLength in characters; shorter secrets are left in the text
 */
export function hideSecrets(secrets: readonly string[], minLength = MIN_SECRET_LENGTH): (text: string) => string {
  const forms = [...secrets]
    .filter((secret) => secret.length >= Math.max(minLength, 1))
    // The longest first: a secret that contains another one is replaced as a whole.
    .sort((one, other) => other.length - one.length)
    .flatMap((secret) => [anyEscape(secret), anyEscape(base64(secret))]);
  if (forms.length === 0) return (text) => text;
  const pattern = new RegExp(forms.join('|'), 'g');
  return (text) => text.replace(pattern, HIDDEN);
}

function base64(secret: string): string {
  return Buffer.from(secret).toString('base64').replace(/=+$/, '');
}

/**
 * A pattern for the text in which each character may be escaped or not. It begins to match a run of backslashes only
 * where the run begins, and divides it in one way only: otherwise texts with many of them would take quadratic time.
 */
function anyEscape(text: string): string {
  const pieces = text.match(/\\+|[^\\]/gu) ?? [];
  return pieces
    .map((piece, index) => {
      if (/^[\w-]$/.test(piece)) return piece;
      if (piece.startsWith('\\')) return anyEscapeOfRun(piece.length, index === 0);
      const isAfterRun = pieces[index - 1]?.startsWith('\\') === true;
      return anyEscapeOf(piece, isAfterRun ? '' : index === 0 ? String.raw`(?:(?<!\\)\\+)?` : String.raw`\\*`);
    })
    .join('');
}

/** The pattern of some backslashes, including those that escape what follows them. */
function anyEscapeOfRun(length: number, isFirst: boolean): string {
  return String.raw`${isFirst ? String.raw`(?<!\\|%5[cC])` : ''}(?:\\|%5[cC]){${length},}`;
}

/** @param escapes the pattern of the backslashes before the character */
function anyEscapeOf(character: string, escapes: string): string {
  const forms = [escapes + literal(character)];
  const inJson = JSON.stringify(character).slice(1, -1);
  if (!inJson.endsWith(character)) forms.push(escapes + literal(inJson));
  const inUrl = Array.from(Buffer.from(character), (byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
  return `(?:${[...forms, anyCase(inUrl)].join('|')})`;
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}

function anyCase(hexadecimal: string): string {
  return hexadecimal.replaceAll(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}
