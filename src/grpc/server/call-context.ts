import type { Inflater } from './inflater';
import type { FailureBlocks } from './responses';

/** What all calls of a door share. */
export interface CallContext {
  readonly failures: FailureBlocks;
  readonly inflater: Inflater;
  /** Milliseconds, monotonic. */
  now(): number;
  /** A handler threw: a defect. The caller learns nothing of it. */
  threw(path: string, error: unknown): void;
  /** A caller began a request and did not end it in time. */
  requestTimedOut(): void;
}
