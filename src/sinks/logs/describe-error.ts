const MAX_CAUSES = 5;

/** An error as one text: its message, followed by those of its causes. An internal error includes its stack. */
export function describeError(error: Error): string {
  const messages: string[] = [];
  let cause: unknown = error;
  for (let depth = 0; cause instanceof Error && depth < MAX_CAUSES; depth += 1) {
    messages.push(isInternalError(cause) ? (cause.stack ?? String(cause)) : shortMessage(cause));
    cause = cause.cause;
  }
  return messages.join(': ');
}

function shortMessage(error: Error): string {
  // A failed connection attempt to several addresses ends in an AggregateError without a message of its own.
  if (error.message === '' && error instanceof AggregateError) return error.errors.map(String).join('; ');
  return error.message || error.name;
}

/** Errors that only a bug in the program throws. */
function isInternalError(error: Error): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
}
