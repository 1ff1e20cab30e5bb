/** Carries lines to a receiver. Nothing of it throws, all of it rejects; after a rejection, {@link open} begins anew. */
export interface LineSender {
  /** Where the lines go, for people. */
  readonly destination: string;
  /** Gets the way clear, where it is not; rejects when the receiver is away, within some seconds. */
  open(): Promise<void>;
  /**
   * Resolves when the lines have left this process; rejects when they did not, or not within some seconds: with
   * a `TakenInPart` where it is known that the first of them did.
   */
  send(lines: readonly string[]): Promise<void>;
  /** Lets go of everything at once. */
  close(): void;
}

/** The receiver refused lines after it had taken the first of them. */
export class TakenInPart extends Error {
  /** @param taken how many lines were taken, from the first */
  constructor(
    readonly taken: number,
    refusal: Error,
  ) {
    super(refusal.message, { cause: refusal });
  }
}
