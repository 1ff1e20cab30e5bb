import type { CancelCause } from '../../../streams/ports/decide';
import type { Inflater } from '../messages/inflater';
import type { FailureBlocks } from '../heads/responses';

/** A call as the door sees it: what happens to it on its stream. */
export interface Call {
  data(source: Buffer, start: number, end: number, isEnded: boolean): void;
  /** Everything at hand has been read, and it is this call's turn. */
  run(): void;
  /** Its stream is gone. */
  cancel(cause: CancelCause): void;
  /** The time set for it has come. */
  expire(): void;
  /** What it sent has left for the peer. */
  drained(): void;
  /** The connection waits for it to end. */
  leave(): void;
}

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
