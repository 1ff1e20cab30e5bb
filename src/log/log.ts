/** What a field of a log line may hold. An error is written as its message and those of its causes. */
export type LogValue = string | number | boolean | Error | null | undefined;

export type LogFields = Readonly<Record<string, LogValue>>;

/**
 * The log. A message is one sentence; values that vary and are worth searching for are fields. No method throws or
 * blocks on a receiver.
 */
export interface Log {
  /** Whether debug lines are written: to be checked before building a line that is costly. */
  readonly isDebug: boolean;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  /**
   * A step in the life of the service that needs no action: it serves, its rules were replaced, it stops. The line has
   * the level `info` and is also written when only warnings and errors are.
   */
  notice(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}
