import type { Attack } from './attack';
import { HTTP2_FRAMES } from './programs/http2-frames';
import { HTTP_REQUESTS } from './programs/http-requests';
import { LARGE_MESSAGES, OTHER_MESSAGES } from './programs/messages';
import { FILES, PROCESS } from './programs/surroundings';

/** All attacks: by the heading of their table in test/README.md, and by their row. */
export const ATTACKS: Readonly<Record<string, Readonly<Record<string, Attack>>>> = {
  'Large messages': LARGE_MESSAGES,
  'Other messages': OTHER_MESSAGES,
  'HTTP/2 frames': HTTP2_FRAMES,
  'HTTP/1.1 requests': HTTP_REQUESTS,
  Files: FILES,
  'Outputs, signals and clock': PROCESS,
};
