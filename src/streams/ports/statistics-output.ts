/** A place that statistics are sent to, now and then. */
export interface StatisticsOutput {
  /**
   * Sends what has moved since the last time, as far as the receiver takes it; the rest stays for the next time. Settles when
   * done or given up, and never rejects. Not to be called again before that.
   */
  flush(): Promise<void>;
  /** Lets go of connections at once. */
  close(): void;
}
