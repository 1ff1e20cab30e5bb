/** Sends lines to a receiver. Methods that return a promise never throw; after a rejection, {@link open} reconnects. */
export interface LineSender {
  /** Where the lines go, for log lines. */
  readonly destination: string;
  /** The bytes of the longest line that it can send; no limit if undefined. Longer lines are left out, and count as sent. */
  readonly maxLineBytes?: number;
  /** Connects unless connected; rejects within some seconds when the receiver cannot be reached. */
  open(): Promise<void>;
  /**
   * Resolves when the lines have left this process; rejects when they have not within some seconds, with a
   * {@link PartialDeliveryError} when it is known that the first of them have.
   */
  send(lines: readonly string[]): Promise<void>;
  /** Releases all resources immediately. */
  close(): void;
}

/** The receiver accepted only the first of the lines. */
export class PartialDeliveryError extends Error {
  override readonly name = 'PartialDeliveryError';

  /** @param delivered the number of lines, from the first, that were accepted */
  constructor(
    readonly delivered: number,
    cause: Error,
  ) {
    super(`only the first ${delivered} lines were delivered`, { cause });
  }
}
