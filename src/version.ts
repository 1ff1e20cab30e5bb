import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The version of this package. The compiled file and this one are equally deep below package.json. */
export const VERSION = readVersion();

function readVersion(): string {
  const contents: unknown = JSON.parse(readFileSync(join(__dirname, '../package.json'), 'utf8'));
  return String(Object(contents).version);
}
