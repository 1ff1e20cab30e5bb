/** What a field of a log line may hold. An error is written as its message and those of its causes. */
export type LogValue = string | number | boolean | Error | null | undefined;

export type LogFields = Readonly<Record<string, LogValue>>;

/**
 * Where lines for people go. A message is one sentence; what varies and is worth searching for goes into the fields.
 * Nothing here throws, and nothing waits.
 */
export interface Log {
  /** Whether debug lines are written: ask before building one that costs something. */
  readonly isDebug: boolean;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}
