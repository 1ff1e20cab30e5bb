import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable, pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { messageOf } from '../../text/thrown';

/** The longest line that is read, in bytes. Those of weir are shorter: their texts have 8,192 characters. */
export const LONGEST_LINE = 256 * 1024;

const CHUNK = 1024 * 1024;
const LINE_FEED = 0x0a;
/** The first two bytes of gzip. */
const GZIP = Buffer.from([0x1f, 0x8b]);

/** The input of a replay, and how much of it has been read. */
export interface LogInput {
  /** In bytes; undefined for what is not a file. */
  readonly size: number | undefined;
  /** In bytes, before they are decompressed. */
  bytesRead: number;
  /** The lines, many at a time; undefined for one that is longer than {@link LONGEST_LINE}. */
  readonly lines: AsyncIterable<readonly (string | undefined)[]>;
}

/**
 * Opens a decision log, which may be compressed by gzip.
 *
 * @param path `-` for standard input
 * @throws Error, also while its lines are read, with one sentence for the user
 */
export async function openLog(path: string): Promise<LogInput> {
  const isStandard = path === '-';
  const name = isStandard ? 'standard input' : path;
  try {
    const status = isStandard ? undefined : await stat(path);
    const source: Readable = isStandard ? process.stdin : createReadStream(path, { highWaterMark: CHUNK });
    const size = status?.isFile() ? status.size : undefined;
    const input = { size, bytesRead: 0, lines: linesOf(named(name, decompressed(chunksOf(source)))) };
    async function* chunksOf(stream: Readable): AsyncGenerator<Buffer> {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        input.bytesRead += chunk.length;
        yield chunk;
      }
    }
    return input;
  } catch (error) {
    throw unreadable(name, error);
  }
}

function unreadable(name: string, error: unknown): Error {
  return new Error(`cannot read the decision log (${name}): ${messageOf(error)}`, { cause: error });
}

async function* named(name: string, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch (error) {
    throw unreadable(name, error);
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
  const begun = new BegunLine();
  for await (const chunk of chunks) {
    const lines: (string | undefined)[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      lines.push(begun.end(chunk.subarray(start, end)));
      start = end + 1;
    }
    begun.add(chunk.subarray(start));
    yield lines;
  }
  if (!begun.isEmpty) yield [begun.end(Buffer.alloc(0))];
}

/** The beginning of a line whose end has not been read. */
class BegunLine {
  #bytes = Buffer.alloc(0);
  #isTooLong = false;

  get isEmpty(): boolean {
    return this.#bytes.length === 0 && !this.#isTooLong;
  }

  add(bytes: Buffer): void {
    this.#isTooLong ||= this.#bytes.length + bytes.length > LONGEST_LINE;
    this.#bytes = this.#isTooLong ? Buffer.alloc(0) : Buffer.concat([this.#bytes, bytes]);
  }

  /** @returns the whole line; undefined when it is too long */
  end(bytes: Buffer): string | undefined {
    if (this.#bytes.length === 0 && !this.#isTooLong && bytes.length <= LONGEST_LINE) return bytes.toString();
    this.add(bytes);
    const line = this.#isTooLong ? undefined : this.#bytes.toString();
    this.#isTooLong = false;
    this.#bytes = Buffer.alloc(0);
    return line;
  }
}
