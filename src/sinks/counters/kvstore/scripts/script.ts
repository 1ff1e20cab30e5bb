import { createHash } from 'node:crypto';

/** A script and the name that the server knows it by once it has seen it. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

export function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}
