// A password may hold any character but white space, unescaped slashes and at signs too, so the mask reaches to the last at
// sign of the word: hiding a host name now and then is better than showing half a password.
const URL_CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)(?:[^\s/@:]*:\S*|[^\s/@]+)@/gi;

/** The text with the user and password of every URL in it replaced: `redis://user:secret@host` → `redis://***@host`. */
export function maskCredentials(text: string): string {
  return text.includes('://') ? text.replace(URL_CREDENTIALS, '$1***@') : text;
}
