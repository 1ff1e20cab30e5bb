import type { Variable } from './environment';
import type { Setting } from '../table/setting';

const LONGEST = 120;

/** A variable and its text as a message may show them: without secrets, on one line, and not endless. */
export function showVariable({ name, text }: Variable, secret: Setting['secret']): string {
  if (secret === 'value') return `${name} (its value is a secret)`;
  // An address may have been given to a setting that takes none.
  const shown = secret === 'credentials' || text.includes('://') ? withoutCredentials(text) : text;
  return `${name}=${JSON.stringify(shown.length > LONGEST ? `${shown.slice(0, LONGEST)}…` : shown)}`;
}

/**
 * An address, or a list of them, without users and passwords. Everything between the first scheme and the last `@` goes:
 * a password may hold commas, slashes and `@` itself. So does a query, which may hold a password too, and, where the `@` was
 * forgotten, what is no host and port.
 */
function withoutCredentials(text: string): string {
  return text
    .replace(/^(?:([a-z]+:\/\/))?[^]*@/i, '$1***@')
    .replace(/\?[^]*$/, '?***')
    .replace(/:\/\/(?!\*\*\*@|(?:[\w.-]*|\[[\da-f:.]+\])(?::\d{1,5})?(?:[/,?]|$))[^]*$/i, '://***');
}
