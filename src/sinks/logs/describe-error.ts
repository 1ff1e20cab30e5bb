const MAX_CAUSES = 5;

/** An error as one text: its message, then those of its causes. A defect in the program brings its stack along. */
export function describeError(error: Error): string {
  const messages: string[] = [];
  let cause: unknown = error;
  for (let depth = 0; cause instanceof Error && depth < MAX_CAUSES; depth += 1) {
    messages.push(isDefect(cause) ? (cause.stack ?? String(cause)) : messageOf(cause));
    cause = cause.cause;
  }
  return messages.join(': ');
}

function messageOf(error: Error): string {
  // Happy eyeballs gives an AggregateError without a message of its own.
  if (error.message === '' && error instanceof AggregateError) return error.errors.map(String).join('; ');
  return error.message || error.name;
}

function isDefect(error: Error): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
}
