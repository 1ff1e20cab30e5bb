import type { CancelCause } from '../../streams/decide';

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
