import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable, pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { rejectDevice } from '../../sources/bounded-file';
import { messageOf } from '../../text/thrown';

/** The longest line that is read, in bytes. Those of weir are shorter: their texts have 8,192 characters. */
export const LONGEST_LINE = 256 * 1024;

const CHUNK = 1024 * 1024;
const LINE_FEED = 0x0a;
/** The first two bytes of gzip. */
const GZIP = Buffer.from([0x1f, 0x8b]);

/** A decision log, which may be compressed by gzip. */
export class LogInput {
  readonly #path: string;
  /** In bytes; undefined for what is not a file. */
  #size: number | undefined;
  /** In bytes, before they are decompressed. */
  #bytesRead = 0;

  /** @param path `-` for standard input */
  constructor(path: string) {
    this.#path = path;
  }

  /** The part that has been read, from 0 to 1; undefined when that is not known. */
  get partRead(): number | undefined {
    return this.#size && this.#bytesRead / this.#size;
  }

  /**
   * The lines, many at a time; undefined for one that is longer than {@link LONGEST_LINE}.
   *
   * @throws Error with one sentence for the user
   */
  async *lines(): AsyncGenerator<readonly (string | undefined)[]> {
    try {
      yield* linesOf(decompressed(this.#chunks()));
    } catch (cause) {
      const name = this.#path === '-' ? 'standard input' : this.#path;
      throw new Error(`cannot read the decision log (${name}): ${messageOf(cause)}`, { cause });
    }
  }

  async *#chunks(): AsyncGenerator<Buffer> {
    let source: Readable = process.stdin;
    if (this.#path !== '-') {
      const status = await stat(this.#path);
      rejectDevice(this.#path, status);
      if (status.isFile()) this.#size = status.size;
      source = createReadStream(this.#path, { highWaterMark: CHUNK });
    }
    for await (const chunk of source as AsyncIterable<Buffer>) {
      this.#bytesRead += chunk.length;
      yield chunk;
    }
  }
}

async function* decompressed(chunks: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  let first = Buffer.alloc(0);
  while (first.length < GZIP.length) {
    const next = await chunks.next();
    if (next.done === true) break;
    first = Buffer.concat([first, next.value]);
  }
  async function* all(): AsyncGenerator<Buffer> {
    yield first;
    yield* chunks;
  }
  if (!first.subarray(0, GZIP.length).equals(GZIP)) yield* all();
  // The error of either is thrown by the iteration.
  else yield* pipeline(Readable.from(all()), createGunzip({ chunkSize: CHUNK }), () => undefined);
}

async function* linesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<readonly (string | undefined)[]> {
  /** The beginning of a line whose end has not been read; of one that is too long, nothing. */
  let begun: Buffer = Buffer.alloc(0);
  let isTooLong = false;
  for await (const chunk of chunks) {
    const bytes = begun.length === 0 ? chunk : Buffer.concat([begun, chunk]);
    const lines: (string | undefined)[] = [];
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
      isTooLong ||= end - start > LONGEST_LINE;
      lines.push(isTooLong ? undefined : bytes.toString('utf8', start, end));
      isTooLong = false;
      start = end + 1;
    }
    isTooLong ||= bytes.length - start > LONGEST_LINE;
    begun = isTooLong ? Buffer.alloc(0) : bytes.subarray(start);
    yield lines;
  }
  if (isTooLong || begun.length > 0) yield [isTooLong ? undefined : begun.toString()];
}
