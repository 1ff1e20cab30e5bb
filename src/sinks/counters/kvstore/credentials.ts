/** What a connection authenticates with. Never logged, never part of an error. */
export interface Credentials {
  readonly username: string | undefined;
  readonly password: string;
}

/** Reads `password` or `user:password`, split at the first colon (KVSTORE_AUTH). */
export function parseCredentials(text: string): Credentials {
  const colon = text.indexOf(':');
  if (colon < 0) return { username: undefined, password: text };
  return { username: text.slice(0, colon) || undefined, password: text.slice(colon + 1) };
}
