/**
 * Lets a program whose output is piped end normally when the reader has closed the pipe: `weir --help | head -1`.
 * Without this, Node ends it with the stack of an internal error.
 *
 * @param streams those that the program writes to
 */
export function tolerateClosedPipes(...streams: readonly NodeJS.WriteStream[]): void {
  for (const stream of streams) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}
