import { hideAddressCredentials } from '../../text/hide-credentials';
import type { Variable } from './environment';
import type { Setting } from '../table/setting';

const LONGEST = 120;

/** A variable and its text as a message may show them: without secrets, on one line, and not endless. */
export function showVariable({ name, text }: Variable, secret: Setting['secret']): string {
  if (secret === 'value') return `${name} (its value is a secret)`;
  // An address may have been given to a setting that takes none.
  const shown = secret === 'credentials' || text.includes('://') ? hideAddressCredentials(text) : text;
  return `${name}=${JSON.stringify(shown.length > LONGEST ? `${shown.slice(0, LONGEST)}…` : shown)}`;
}
