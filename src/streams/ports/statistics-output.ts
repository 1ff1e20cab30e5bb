/** An output to which statistics are sent at intervals. */
export interface StatisticsOutput {
  /**
   * Sends the changes since the last flush, as far as the receiver accepts them; the rest is kept for the next flush.
   * Resolves when done or given up, never rejects, and must not be called again before that.
   */
  flush(): Promise<void>;
  /** Releases connections at once. */
  close(): void;
}
