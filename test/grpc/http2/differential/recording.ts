import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Sequence } from './sequences';

export const RECORDING = join(__dirname, 'fixtures/x-net.json');

/** How golang.org/x/net/http2 reacted, as `bench/conformance/x-net/record.ts` has written it. */
export interface Recording {
  /** Of golang.org/x/net. */
  readonly version: string;
  /** By {@link keyOf}: the reactions to the steps of each sequence, joined by `|`. */
  readonly reactions: Readonly<Record<string, string>>;
}

export function readRecording(): Recording {
  return JSON.parse(readFileSync(RECORDING, 'utf8')) as Recording;
}

/** Changes with the sequence, which must then be recorded again. */
export function keyOf({ bytes }: Sequence): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 8);
}
