import type { HeaderInterpreter } from '../headers/header-blocks';
import type { Stream } from './stream';

/**
 * What a server serves. `M` is what a request's header list means to it, `S` what it keeps for a stream, in
 * {@link Stream.state}. No method may throw.
 */
export interface Application<M, S> extends HeaderInterpreter<M> {
  /** The header block that answers a request whose header list is over a limit. */
  readonly oversized: Uint8Array;
  /** A request begins. `isEnded`: it has no body and no trailers. */
  open(stream: Stream<S>, meaning: M, isEnded: boolean): void;
  /**
   * More of its body, in `source[start, end)`, which stays as it is for as long as anybody looks, but keeps a whole chunk
   * of input alive: what outlives the turn is to be copied. `isEnded`: nothing more comes.
   */
  data(stream: Stream<S>, source: Buffer, start: number, end: number, isEnded: boolean): void;
  /** Called for a stream after {@link Stream.schedule}, once everything that had arrived has been read. */
  run(stream: Stream<S>): void;
  /** The stream is gone before its response was whole: reset by either side, or its connection lost. */
  cancel(stream: Stream<S>): void;
  /** The time set with {@link Stream.expireAt} has come. */
  expire(stream: Stream<S>): void;
  /** All that was to be sent on the stream so far has left for the peer. */
  drained(stream: Stream<S>): void;
  /** The connection is about to end and waits for this stream: one that has no end of its own ends itself now. */
  leave(stream: Stream<S>): void;
}
