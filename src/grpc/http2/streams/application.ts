import type { HeaderInterpreter } from '../header-reader';
import type { Stream } from './stream';

/**
 * What a server serves. `M` is the application's interpretation of a request's header list, `S` its state for a stream, in
 * {@link Stream.state}. No method may throw.
 */
export interface Application<M, S> extends HeaderInterpreter<M> {
  /** The header block of the response to a request whose header list is over a limit. */
  readonly oversized: Uint8Array;
  /** A request has begun. `isEnded`: it has neither a body nor trailers. */
  open(stream: Stream<S>, meaning: M, isEnded: boolean): void;
  /**
   * More of the body has been received, in `source[start, end)`. The bytes never change, but a view of them keeps a whole
   * chunk of input in memory: copy what is kept beyond the turn. `isEnded`: the request is complete.
   */
  data(stream: Stream<S>, source: Buffer, start: number, end: number, isEnded: boolean): void;
  /** Called after {@link Stream.schedule}, once all input that had arrived has been read. */
  run(stream: Stream<S>): void;
  /**
   * A stream that is scheduled may have to wait for seconds, as the process has more work than time, or the peer does not read its
   * output: what it keeps is to be accounted for. Called at least once before it runs late.
   */
  waits(stream: Stream<S>): void;
  /** The stream was closed before its response was complete: reset by either side, or its connection has ended. */
  cancel(stream: Stream<S>): void;
  /** The time set by {@link Stream.expireAt} has come. */
  expire(stream: Stream<S>): void;
  /** The memory of this stream's incomplete request is needed for others: the stream must end now. */
  displaced(stream: Stream<S>): void;
  /** All output that waited for a flow-control window has been sent. */
  drained(stream: Stream<S>): void;
  /** The connection is shutting down and waits for this stream. A response without an end of its own must end now. */
  goingAway(stream: Stream<S>): void;
}
