import { ConnectionError } from '../protocol';
import type { PeerSettings } from '../protocol';
import { DEFAULT_WINDOW_BYTES, ErrorCode } from '../protocol';
import type { AbuseLimits } from '../limits/abuse-limits';
import type { Peer, Rejection } from '../limits/rejections';
import { Ending } from './closed-streams';
import type { ConnectionControl, ServerContext } from './connection-control';
import type { Holder } from './held-bytes';
import { OpenStreams } from './open-streams';
import type { RunQueue } from './run-queue';
import type { SendQueue } from './send-queue';
import { Stream, type StreamControl } from './stream';
import { StreamIds } from './stream-ids';
import { StreamResets } from './stream-resets';

export interface StreamsControl extends ConnectionControl {
  /** The last open stream has closed. */
  becameIdle(): void;
}

export interface StreamsParts<S> {
  readonly control: StreamsControl;
  readonly context: ServerContext<unknown, S>;
  readonly abuseLimits: AbuseLimits;
  readonly peerSettings: PeerSettings;
  readonly sendQueue: SendQueue<S>;
  readonly runQueue: RunQueue<S>;
}

/** The open streams of a connection: opening, the operations of {@link Stream}, and closing. */
export class Streams<S> implements StreamControl<S>, Holder<S> {
  readonly ids = new StreamIds();
  readonly resets: StreamResets<S>;
  held = 0;
  reclaimable = 0;
  heldClass = 0;
  readonly #control: StreamsControl;
  readonly #context: ServerContext<unknown, S>;
  readonly #abuseLimits: AbuseLimits;
  readonly #peerSettings: PeerSettings;
  readonly #sendQueue: SendQueue<S>;
  readonly #runQueue: RunQueue<S>;
  readonly #open = new OpenStreams<S>();
  /** The number of streams that are open, or closed while the application still works on them. */
  #slotsTaken = 0;
  /** The earliest {@link Stream.expiresAt}. */
  #expiry = Infinity;

  constructor({ control, context, abuseLimits, peerSettings, sendQueue, runQueue }: StreamsParts<S>) {
    this.#control = control;
    this.#context = context;
    this.#abuseLimits = abuseLimits;
    this.#peerSettings = peerSettings;
    this.#sendQueue = sendQueue;
    this.#runQueue = runQueue;
    this.resets = new StreamResets<S>({ control, abuseLimits, sendQueue, ids: this.ids });
  }

  // ---------------------------------------------------------------- opening and finding

  get size(): number {
    return this.#open.size;
  }

  get peer(): Peer {
    return this.#control.peer;
  }

  /** Streams wait because the process has more work than time. */
  get hasBacklog(): boolean {
    return this.#runQueue.hasBacklog;
  }

  get hasFreeSlot(): boolean {
    return this.#slotsTaken < this.#context.limits.maxConcurrentStreams;
  }

  /** The stream, if it is open. */
  get(id: number): Stream<S> | undefined {
    return this.#open.get(id);
  }

  /** Opens a stream. `contentLength` is -1 if the request has none. */
  add(id: number, contentLength: number, isRemoteEnded: boolean): Stream<S> {
    const stream = new Stream<S>(this, id, this.#peerSettings.initialWindowBytes, contentLength);
    stream.isRemoteEnded = isRemoteEnded;
    this.#open.add(stream);
    this.#slotsTaken += 1;
    this.#context.openStreams += 1;
    return stream;
  }

  // ---------------------------------------------------------------- all open streams

  /** Section 6.9.2: a new SETTINGS_INITIAL_WINDOW_SIZE also applies to open streams, whose windows may become negative. */
  moveSendWindows(difference: number): void {
    for (const stream of this.#open.list()) {
      if (!this.#sendQueue.widenStream(stream, difference)) {
        throw new ConnectionError(
          ErrorCode.FLOW_CONTROL_ERROR,
          'flow_control_error',
          'SETTINGS_INITIAL_WINDOW_SIZE overflows a window',
        );
      }
    }
  }

  /** The connection is shutting down and waits for its streams. */
  notifyGoingAway(): void {
    for (const stream of this.#open.list()) this.#context.application.goingAway(stream);
  }

  /** Writes RST_STREAM for each stream, before the connection ends. */
  writeResets(code: ErrorCode): void {
    for (const { id } of this.#open.list()) this.#sendQueue.writer.reset(id, code);
  }

  /** The connection has ended. */
  cancelAll(): void {
    for (const stream of this.#open.list()) {
      this.#sendQueue.discard(stream);
      this.#markClosed(stream);
      this.#context.application.cancel(stream);
    }
    this.#open.clear();
    this.#runQueue.clear();
  }

  /** The earliest time at which {@link check} must be called. */
  get deadline(): number {
    return Math.min(this.#expiry, this.#sendQueue.earliestDeadline);
  }

  check(now: number): void {
    if (now >= this.#expiry) this.#expire(now);
    for (const stream of this.#sendQueue.overdue(now)) {
      this.#control.rejected('response_timeout');
      this.resetStream(stream, ErrorCode.CANCEL, undefined);
    }
  }

  #expire(now: number): void {
    this.#expiry = Infinity;
    for (const stream of this.#open.list()) {
      if (stream.expiresAt <= now) {
        stream.expiresAt = Infinity;
        this.#context.application.expire(stream);
      } else this.#expiry = Math.min(this.#expiry, stream.expiresAt);
    }
  }

  // ---------------------------------------------------------------- operations of one stream

  get now(): number {
    return this.#control.now;
  }

  get peerInitialWindow(): number {
    return this.#peerSettings.initialWindowBytes;
  }

  get peerMaxHeaderListBytes(): number {
    return this.#peerSettings.maxHeaderListBytes;
  }

  schedule(stream: Stream<S>): void {
    // While it waits to go on, others may run: otherwise all that run could wait for one another.
    stream.stopCounting();
    this.#runQueue.add(stream);
  }

  workEnded(): void {
    this.#context.workPacing.ended();
  }

  releaseSlot(): void {
    this.#slotsTaken -= 1;
    this.#context.openStreams -= 1;
  }

  expireStreamAt(stream: Stream<S>, time: number): void {
    stream.expiresAt = time;
    if (time < this.#expiry) this.#expiry = time;
    this.#control.wakeAt(time);
  }

  hold(stream: Stream<S>, bytes: number): boolean {
    if (this.#context.heldBytes.hold(this, stream, bytes, this.#control.now)) return true;
    this.#control.rejected('request_memory', 'no memory is left for it');
    return false;
  }

  releaseHeld(stream: Stream<S>, bytes: number): void {
    this.#context.heldBytes.release(this, stream, bytes);
  }

  requestCompleted(stream: Stream<S>): void {
    this.#context.heldBytes.complete(this, stream);
  }

  largestHolding(): Stream<S> | undefined {
    let largest: Stream<S> | undefined;
    for (const stream of this.#open.list()) {
      if (!stream.isRequestComplete && stream.held > (largest?.held ?? 0)) largest = stream;
    }
    return largest;
  }

  displace(stream: Stream<S>): void {
    this.#control.rejected('request_memory', 'its memory was needed for other connections');
    this.#context.application.displaced(stream);
    // Trailers that wait for a flow-control window would keep the memory.
    this.resetStream(stream, ErrorCode.ENHANCE_YOUR_CALM);
  }

  refund(stream: Stream<S>, bytes: number): void {
    stream.unrefunded += bytes;
    if (stream.unrefunded * 2 < DEFAULT_WINDOW_BYTES || !this.#control.mayControl()) return;
    this.#sendQueue.writer.windowUpdate(stream.id, stream.unrefunded);
    stream.receiveWindow += stream.unrefunded;
    stream.unrefunded = 0;
  }

  rejected(kind: Rejection): void {
    this.#control.rejected(kind);
  }

  refundSmallData(stream: Stream<S>): void {
    this.#abuseLimits.refundSmallData(stream.smallDataCharged);
    stream.smallDataCharged = 0;
  }

  sendHeaders(stream: Stream<S>, block: Uint8Array): void {
    this.#sendQueue.headers(stream.id, block);
  }

  sendData(stream: Stream<S>, first: Uint8Array, second: Uint8Array): void {
    this.#sendQueue.data(stream, first, second);
  }

  sendEnd(stream: Stream<S>, trailers: Uint8Array): void {
    this.#sendQueue.end(stream, trailers);
  }

  // ---------------------------------------------------------------- closing

  responseEnded(stream: Stream<S>): void {
    this.#abuseLimits.responseSent();
    if (stream.isRemoteEnded) {
      this.#close(stream, Ending.ENDED);
      return;
    }
    // Section 8.1: NO_ERROR makes the client stop sending a request that is not needed any more.
    if (this.#control.mayControl()) this.#sendQueue.writer.reset(stream.id, ErrorCode.NO_ERROR);
    this.#close(stream, Ending.RESET_BY_US);
  }

  resetByPeer(stream: Stream<S>): void {
    this.#close(stream, Ending.RESET_BY_PEER);
    this.#context.application.cancel(stream);
  }

  /** Resets an open stream, and counts a fault of the peer. */
  resetStream(stream: Stream<S>, code: ErrorCode, rejection?: Rejection): void {
    if (stream.isClosed) return;
    if (rejection !== undefined) this.#control.rejected(rejection);
    this.#close(stream, Ending.RESET_BY_US);
    this.#context.application.cancel(stream);
    this.resets.write(stream.id, code, true);
  }

  /** Neither serves nor answers a stream. */
  ignore(id: number): void {
    this.ids.closed.add(id, Ending.RESET_BY_US);
  }

  #close(stream: Stream<S>, ending: Ending): void {
    if (stream.isClosed) return;
    this.#open.delete(stream.id);
    this.ids.closed.add(stream.id, ending);
    this.#sendQueue.discard(stream);
    this.#markClosed(stream);
    if (this.#open.size === 0) this.#control.becameIdle();
  }

  #markClosed(stream: Stream<S>): void {
    if (stream.held > 0) this.releaseHeld(stream, stream.held);
    stream.isClosed = true;
    if (!stream.isRunning) this.releaseSlot();
  }
}
