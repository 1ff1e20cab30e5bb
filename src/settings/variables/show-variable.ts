import { hideAddressCredentials } from '../../text/hide-credentials';
import type { Variable } from './environment';
import type { Setting } from '../table/setting';

const LONGEST = 120;

/** A variable and its text for a message: without secrets, on one line and truncated. */
export function showVariable({ name, text }: Variable, secret: Setting['secret']): string {
  if (secret === 'value') return `${name} (secret value)`;
  // A URL may have been set by mistake where the setting expects something else.
  const shown = secret === 'credentials' || text.includes('://') ? hideAddressCredentials(text) : text;
  return `${name}=${JSON.stringify(shown.length > LONGEST ? `${shown.slice(0, LONGEST)}…` : shown)}`;
}
