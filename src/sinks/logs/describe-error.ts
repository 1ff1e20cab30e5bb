const MAX_CAUSES = 5;

/**
 * An error as one text: its message, followed by those of its causes unless it quotes them. An internal error includes its stack.
 */
export function describeError(error: Error): string {
  const messages: string[] = [];
  let next: unknown = error;
  for (let depth = 0; next instanceof Error && depth < MAX_CAUSES; depth += 1) {
    const cause = next;
    const message = isInternalError(cause) ? (cause.stack ?? String(cause)) : shortMessage(cause);
    if (!messages.some((earlier) => quotes(earlier, message, cause))) messages.push(message);
    next = cause.cause;
  }
  return messages.join(': ');
}

/** Whether a text contains the message of an error, or stands for it with its code in parentheses. */
function quotes(text: string, message: string, error: Error): boolean {
  return text.includes(message) || ('code' in error && text.includes(`(${String(error.code)})`));
}

function shortMessage(error: Error): string {
  // A failed connection attempt to several addresses ends in an AggregateError without a message of its own.
  if (error.message === '' && error instanceof AggregateError) return error.errors.map(String).join('; ');
  // Node appends the files from which a module that it cannot find was required.
  const [message = ''] = error.message.split('\nRequire stack:');
  return message || error.name;
}

/** Errors that only a bug in the program throws. */
function isInternalError(error: Error): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
}
