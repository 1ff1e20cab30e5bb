import type { Observable } from 'rxjs';
import type { Topic } from './topics';

/** One end of the pipe between primary and worker. */
export interface Channel {
  /**
   * Sends a frame; frames arrive in order, and those of one callback of the event loop leave in one write. The body is copied. After the other
   * end is gone it does nothing.
   *
   * @throws RangeError when the body is longer than {@link MAX_BODY_BYTES}
   */
  send(topic: Topic, body: Uint8Array | string): void;
  /**
   * The bodies of the frames of a topic, each delivered once. Each topic has one subscriber, before the first frame arrives; without
   * one, frames are dropped. A body is part of a larger buffer: copy what is kept. Completes when the other end is gone.
   */
  frames(topic: Topic): Observable<Buffer>;
  /** Emits once when the other end is gone, also to those who subscribe later, and completes. */
  readonly closed$: Observable<void>;
  /** Whether so much waits for the other end to read it that a sender of much should wait for {@link drained$}. */
  readonly isCongested: boolean;
  /** Emits each time when the system has accepted everything that was sent. Completes when the other end is gone. */
  readonly drained$: Observable<void>;
}

/** The longest body of a frame, so that one frame never holds up the others for long. */
export const MAX_BODY_BYTES = 1024 * 1024;
