import type { AbuseLimits } from '../limits/abuse-limits';
import { Ending } from './closed-streams';
import { ConnectionError } from '../frames/errors';
import type { SendQueue } from './send-queue';
import type { PeerSettings } from '../frames/peer-settings';
import { DEFAULT_WINDOW_BYTES, ErrorCode } from '../frames/protocol';
import type { Refusal } from '../limits/refusals';
import type { RunQueue } from './run-queue';
import type { ServerContext } from './server-context';
import { Stream, type StreamOwner } from './stream';
import { StreamNumbers } from './stream-numbers';
import type { ConnectionControl } from './connection-control';

export interface StreamsOwner extends ConnectionControl {
  /** The last open stream has closed. */
  becameIdle(): void;
}

/** The streams of a connection: how they open, what they ask for while they last, how they close. */
export class Streams<S> implements StreamOwner<S> {
  readonly #owner: StreamsOwner;
  readonly #context: ServerContext<unknown, S>;
  readonly #peer: PeerSettings;
  readonly #outflow: SendQueue<S>;
  readonly #allowances: AbuseLimits;
  readonly #queue: RunQueue<S>;
  readonly numbers = new StreamNumbers();
  readonly #open = new Map<number, Stream<S>>();
  /** Streams that are open, and closed ones whose work goes on. */
  #placesTaken = 0;
  /** Bytes of requests that the application keeps. */
  #held = 0;
  #expiry = Infinity;

  constructor(
    owner: StreamsOwner,
    context: ServerContext<unknown, S>,
    peer: PeerSettings,
    outflow: SendQueue<S>,
    allowances: AbuseLimits,
    queue: RunQueue<S>,
  ) {
    this.#owner = owner;
    this.#context = context;
    this.#peer = peer;
    this.#outflow = outflow;
    this.#allowances = allowances;
    this.#queue = queue;
  }

  // ---------------------------------------------------------------- which there are

  get size(): number {
    return this.#open.size;
  }

  get hasPlace(): boolean {
    return this.#placesTaken < this.#context.limits.maxConcurrentStreams;
  }

  /** An open stream. */
  get(id: number): Stream<S> | undefined {
    return this.#open.get(id);
  }

  add(id: number, contentLength: number, isRemoteEnded: boolean): Stream<S> {
    const stream = new Stream<S>(this, id, this.#peer.initialWindowBytes, contentLength);
    stream.isRemoteEnded = isRemoteEnded;
    this.#open.set(id, stream);
    this.#placesTaken += 1;
    return stream;
  }

  // ---------------------------------------------------------------- what all of them see

  /** Section 6.9.2: open streams follow a new SETTINGS_INITIAL_WINDOW_SIZE, below zero too. */
  moveSendWindows(difference: number): void {
    for (const stream of this.#open.values()) {
      if (!this.#outflow.widenStream(stream, difference)) {
        throw new ConnectionError(
          ErrorCode.FLOW_CONTROL_ERROR,
          'flow_control_error',
          'SETTINGS_INITIAL_WINDOW_SIZE overflows a window',
        );
      }
    }
  }

  askToLeave(): void {
    for (const stream of this.#open.values()) this.#context.application.leave(stream);
  }

  /** Writes RST_STREAM for each: the connection is about to be over. */
  writeResets(code: ErrorCode): void {
    for (const id of this.#open.keys()) this.#outflow.writer.reset(id, code);
  }

  /** The connection is over. */
  cancelAll(): void {
    for (const stream of this.#open.values()) {
      this.#outflow.discard(stream);
      this.#markClosed(stream);
      this.#context.application.cancel(stream);
    }
    this.#open.clear();
    this.#queue.clear();
  }

  /** No stream has to be looked at before this. */
  get deadline(): number {
    return Math.min(this.#expiry, this.#outflow.earliestDeadline);
  }

  check(now: number): void {
    if (now >= this.#expiry) this.#expire(now);
    for (const stream of this.#outflow.overdue(now)) {
      this.#context.refused('response_timeout');
      this.resetStream(stream, ErrorCode.CANCEL, undefined);
    }
  }

  #expire(now: number): void {
    this.#expiry = Infinity;
    for (const stream of this.#open.values()) {
      if (stream.expiresAt <= now) {
        stream.expiresAt = Infinity;
        this.#context.application.expire(stream);
      } else this.#expiry = Math.min(this.#expiry, stream.expiresAt);
    }
  }

  // ---------------------------------------------------------------- what one of them asks for

  get now(): number {
    return this.#owner.now;
  }

  get peerInitialWindow(): number {
    return this.#peer.initialWindowBytes;
  }

  get peerMaxHeaderListBytes(): number {
    return this.#peer.maxHeaderListBytes;
  }

  schedule(stream: Stream<S>): void {
    this.#queue.add(stream);
  }

  releasePlace(): void {
    this.#placesTaken -= 1;
  }

  expireStreamAt(stream: Stream<S>, time: number): void {
    stream.expiresAt = time;
    if (time < this.#expiry) this.#expiry = time;
    this.#owner.wakeAt(time);
  }

  hold(stream: Stream<S>, bytes: number): boolean {
    const context = this.#context;
    const { limits } = context;
    if (this.#held + bytes > limits.maxHeldBytesPerConnection || context.held + bytes > limits.maxHeldBytes) {
      context.refused('request_memory');
      return false;
    }
    stream.held += bytes;
    this.#held += bytes;
    context.held += bytes;
    return true;
  }

  letGo(stream: Stream<S>, bytes: number): void {
    stream.held -= bytes;
    this.#held -= bytes;
    this.#context.held -= bytes;
  }

  refund(stream: Stream<S>, bytes: number): void {
    stream.unrefunded += bytes;
    if (stream.unrefunded * 2 < DEFAULT_WINDOW_BYTES || !this.#owner.mayControl()) return;
    this.#outflow.writer.windowUpdate(stream.id, stream.unrefunded);
    stream.receiveWindow += stream.unrefunded;
    stream.unrefunded = 0;
  }

  refundSmallData(stream: Stream<S>): void {
    this.#allowances.refundSmallData(stream.smallDataCharged);
    stream.smallDataCharged = 0;
  }

  sendHeaders(stream: Stream<S>, block: Uint8Array): void {
    this.#outflow.headers(stream.id, block);
  }

  sendData(stream: Stream<S>, first: Uint8Array, second: Uint8Array): void {
    this.#outflow.data(stream, first, second);
  }

  sendEnd(stream: Stream<S>, trailers: Uint8Array): void {
    this.#outflow.end(stream, trailers);
  }

  // ---------------------------------------------------------------- how it ends

  responseEnded(stream: Stream<S>): void {
    this.#allowances.answered();
    if (stream.isRemoteEnded) {
      this.#close(stream, Ending.ENDED);
      return;
    }
    // Section 8.1: the rest of the request is not wanted.
    if (this.#owner.mayControl()) this.#outflow.writer.reset(stream.id, ErrorCode.NO_ERROR);
    this.#close(stream, Ending.RESET_BY_US);
  }

  resetByPeer(stream: Stream<S>): void {
    this.#close(stream, Ending.RESET_BY_PEER);
    this.#context.application.cancel(stream);
  }

  /** Ends a stream before its time, and counts it against the peer. */
  resetStream(stream: Stream<S>, code: ErrorCode, refusal?: Refusal): void {
    if (stream.isClosed) return;
    if (refusal !== undefined) this.#context.refused(refusal);
    this.#close(stream, Ending.RESET_BY_US);
    this.#context.application.cancel(stream);
    this.#writeReset(stream.id, code, true);
  }

  /** A stream that is not served, and not answered either. */
  ignore(id: number): void {
    this.numbers.closed.add(id, Ending.RESET_BY_US);
  }

  /** A stream that is refused as it opens. */
  resetUnopened(id: number, code: ErrorCode, refusal: Refusal, isFault: boolean): void {
    this.#context.refused(refusal);
    this.numbers.closed.add(id, Ending.RESET_BY_US);
    this.#writeReset(id, code, isFault);
  }

  /** A frame came on a stream that had closed. */
  resetClosed(id: number, code: ErrorCode): void {
    this.#context.refused('stream_error');
    this.numbers.closed.markReset(id);
    this.#writeReset(id, code, true);
  }

  #writeReset(id: number, code: ErrorCode, isFault: boolean): void {
    const owner = this.#owner;
    if (owner.isOver || !owner.mayControl()) return;
    this.#outflow.writer.reset(id, code);
    if (isFault) this.#allowances.chargeFault(owner.now);
  }

  #close(stream: Stream<S>, ending: Ending): void {
    if (stream.isClosed) return;
    this.#open.delete(stream.id);
    this.numbers.closed.add(stream.id, ending);
    this.#outflow.discard(stream);
    this.#markClosed(stream);
    if (this.#open.size === 0) this.#owner.becameIdle();
  }

  #markClosed(stream: Stream<S>): void {
    if (stream.held > 0) this.letGo(stream, stream.held);
    stream.isClosed = true;
    if (!stream.isRunning) this.#placesTaken -= 1;
  }
}
