import { admitFrame } from './admission';
import { Allowances } from './allowances';
import type { Application } from './application';
import { BlockAssembly } from './block-assembly';
import { ClosedStreams, Ending } from './closed-streams';
import { ConnectionError } from './errors';
import { FrameReader } from './frame-reader';
import { Flaw, type Head, type HeaderBlockReader, HeaderTables } from './header-blocks';
import type { Limits } from './limits';
import { Outflow } from './outflow';
import { PeerSettings } from './peer-settings';
import {
  DEFAULT_HEADER_TABLE_BYTES,
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  Flag,
  FrameType,
  MAX_31_BITS,
  Setting,
} from './protocol';
import type { Refusal } from './refusals';
import { Stream, type StreamOwner } from './stream';
import type { Wire } from './wire';

const { END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY } = Flag;
const NOTHING = Buffer.alloc(0);
/** Our PINGs, told apart by their octets: is the peer there, and has it seen the GOAWAY? */
const KEEPALIVE_PING = Buffer.from('weiralve', 'latin1');
const GOAWAY_PING = Buffer.from('weirgone', 'latin1');
/** The age at which a connection ends varies by so much either way, so that a fleet does not reconnect at once. */
const AGE_JITTER = 0.1;

/** What the connections of a server share. */
export interface ConnectionContext<M, S> {
  readonly application: Application<M, S>;
  readonly limits: Limits;
  readonly headerBlocks: HeaderBlockReader<M>;
  /** Octets of requests that the application keeps, over all connections. */
  held: number;
  /** Milliseconds, monotonic. */
  now(): number;
  refused(kind: Refusal): void;
  /** A defect of ours: the connection it happened on has been ended. */
  crashed(error: unknown): void;
  /** Have {@link Connection.flush} called when this turn is over. */
  flushLater(connection: Connection<M, S>): void;
  /** Have {@link Connection.runScheduled} called in the next turn. */
  runLater(connection: Connection<M, S>): void;
}

/** How far the end of a connection has come. */
const Leaving = {
  NOT: 0,
  /** The peer knows; new streams are still served until it must have seen it. */
  ANNOUNCED: 1,
  /** New streams are ignored; the open ones finish. */
  FINAL: 2,
} as const;
type Leaving = (typeof Leaving)[keyof typeof Leaving];

/**
 * One HTTP/2 connection, server side (RFC 9113). It reads no clock, owns no timer and no socket: {@link receive} hands it
 * what came, {@link tick} the time, {@link Wire} takes what it says.
 */
export class Connection<M, S> implements StreamOwner<S> {
  now: number;
  /** GOAWAY with an error was sent, or the wire is gone: nothing is read any more. */
  isOver = false;

  private readonly reader = new FrameReader(this);
  private readonly outflow: Outflow<S>;
  private readonly allowances: Allowances;
  private readonly tables = new HeaderTables<M>();
  private readonly peer = new PeerSettings();
  private readonly streams = new Map<number, Stream<S>>();
  private readonly closed = new ClosedStreams();
  private readonly limits: Limits;
  private readonly application: Application<M, S>;

  private assembly: BlockAssembly | undefined;
  private highestStream = 0;
  /** The last stream that the final GOAWAY promised to serve. */
  private lastServed = MAX_31_BITS;
  /** Streams that are open, and closed ones whose work goes on. */
  private placesTaken = 0;
  private readonly scheduled: Stream<S>[] = [];
  private scheduledFrom = 0;

  private receiveWindow: number;
  private unrefunded = 0;
  /** Octets of requests that the application keeps. */
  private held = 0;

  private hasSettings = false;
  private settingsToAck = 1;
  /** Output written meanwhile leaves when it is over. */
  private isReceiving = true;
  private pumpDue = false;
  private isPaused = false;
  private isGone = false;
  private leaving: Leaving = Leaving.NOT;
  private leavingReason = '';

  /** No deadline below comes before this. */
  private nextWake = 0;
  private prefaceDeadline: number;
  private settingsDeadline: number;
  private blockDeadline = Infinity;
  private keepaliveDeadline = Infinity;
  private ageDeadline: number;
  private leaveDeadline = Infinity;
  private cutDeadline = Infinity;
  private destroyDeadline = Infinity;
  private outputDeadline = Infinity;
  private unsentAtDeadline = 0;
  private streamDeadline = Infinity;
  private lastRead: number;
  private idleSince: number;

  /** `prefaceMs`: how much of {@link Limits.prefaceMs} is left. */
  constructor(
    private readonly context: ConnectionContext<M, S>,
    private readonly wire: Wire,
    prefaceMs = context.limits.prefaceMs,
  ) {
    const { limits, application } = context;
    this.limits = limits;
    this.application = application;
    this.now = context.now();
    this.lastRead = this.now;
    this.idleSince = this.now;
    this.outflow = new Outflow(this, wire, limits);
    this.allowances = new Allowances(limits, (refusal, message) =>
      this.fail(ErrorCode.ENHANCE_YOUR_CALM, refusal, message),
    );
    this.prefaceDeadline = this.now + prefaceMs;
    this.settingsDeadline = this.now + prefaceMs + limits.settingsAckMs;
    this.ageDeadline = this.now + limits.maxAgeMs * (1 - AGE_JITTER + 2 * AGE_JITTER * Math.random());
    this.receiveWindow = limits.connectionWindowBytes;

    // Clients wait for our SETTINGS before they call.
    this.outflow.writer.settings([
      [Setting.MAX_CONCURRENT_STREAMS, limits.maxConcurrentStreams],
      [Setting.MAX_HEADER_LIST_SIZE, limits.maxHeaderListBytes],
      [Setting.NO_RFC7540_PRIORITIES, 1],
    ]);
    this.outflow.writer.windowUpdate(0, limits.connectionWindowBytes - DEFAULT_WINDOW_BYTES);
    this.isReceiving = false;
    this.flush();
  }

  get peerInitialWindow(): number {
    return this.peer.initialWindowBytes;
  }

  get peerMaxHeaderListBytes(): number {
    return this.peer.maxHeaderListBytes;
  }

  // ---------------------------------------------------------------- what the wire brings

  /** Octets from the peer. The chunk is the connection's from here on. */
  receive(chunk: Buffer): void {
    if (this.isOver) return;
    this.now = this.context.now();
    this.lastRead = this.now;
    this.isReceiving = true;
    try {
      this.reader.read(chunk);
    } catch (error) {
      if (error instanceof ConnectionError) this.fail(error.code, error.refusal, error.message);
      else this.crash(error);
    }
    this.isReceiving = false;
    this.endTurn();
  }

  /** The socket took all that was written. */
  drained(): void {
    this.outputDeadline = Infinity;
    if (this.isGone) return;
    this.now = this.context.now();
    if (this.isPaused) {
      this.isPaused = false;
      this.wire.resume();
    }
    this.endTurn();
  }

  /** The peer is gone, and with it whoever waits for answers. */
  wireClosed(): void {
    this.isOver = true;
    this.isGone = true;
    this.cancelStreams();
  }

  /** Looks at the time. Called now and then, some ten times a second. */
  tick(now: number): void {
    if (now < this.nextWake || this.isGone) return;
    this.now = now;
    this.nextWake = Infinity;
    this.checkDeadlines();
    if (!this.isOver && this.outflow.hasWaiting) {
      this.outflow.pump(true);
      if (this.outflow.hasWaiting) this.nextWake = 0;
    }
    this.flush();
    this.wakeAt(
      Math.min(
        this.prefaceDeadline,
        this.settingsDeadline,
        this.blockDeadline,
        this.ageDeadline,
        this.leaveDeadline,
        this.cutDeadline,
        this.destroyDeadline,
        this.outputDeadline,
        this.streamDeadline,
        this.outflow.earliestDeadline,
        this.keepaliveDeadline === Infinity ? this.lastRead + this.limits.keepaliveMs : this.keepaliveDeadline,
        this.idleSince + this.limits.maxIdleMs,
      ),
    );
  }

  wakeAt(time: number): void {
    if (time < this.nextWake) this.nextWake = time;
  }

  // ---------------------------------------------------------------- ends

  /**
   * Ends gracefully (RFC 9113, section 6.8): GOAWAY that admits everything, GOAWAY that names the last stream once the
   * peer must have seen the first, then the open streams finish. `reason` is for the peer's log.
   */
  leave(reason: string, graceMs = Infinity): void {
    if (this.isOver || this.leaving !== Leaving.NOT) return;
    this.now = this.context.now();
    this.leaving = Leaving.ANNOUNCED;
    this.leavingReason = reason;
    this.outflow.writer.goaway(MAX_31_BITS, ErrorCode.NO_ERROR, reason);
    this.outflow.writer.ping(false, GOAWAY_PING);
    this.ageDeadline = Infinity;
    this.leaveDeadline = this.now + this.limits.goawayMs;
    this.cutDeadline = this.leaveDeadline + graceMs;
    this.wakeAt(this.leaveDeadline);
    this.flush();
  }

  /** Ends now: what is open is reset. */
  cut(reason: string): void {
    if (this.isOver) return;
    this.now = this.context.now();
    for (const stream of this.streams.values()) this.outflow.writer.reset(stream.id, ErrorCode.CANCEL);
    this.outflow.writer.goaway(Math.min(this.highestStream, this.lastServed), ErrorCode.NO_ERROR, reason);
    this.sayGoodbye();
  }

  private leaveForGood(): void {
    this.leaving = Leaving.FINAL;
    this.lastServed = this.highestStream;
    // The grace counts from here, however long the peer took.
    this.cutDeadline += this.now - this.leaveDeadline;
    this.leaveDeadline = Infinity;
    this.wakeAt(this.cutDeadline);
    this.outflow.writer.goaway(this.lastServed, ErrorCode.NO_ERROR, this.leavingReason);
    for (const stream of this.streams.values()) this.application.leave(stream);
    this.finishLeaving();
  }

  private finishLeaving(): void {
    if (this.leaving === Leaving.FINAL && this.streams.size === 0 && !this.isOver) this.sayGoodbye();
  }

  /**
   * Sends what there is and the end of the stream, and goes on reading for a while: a socket closed over unread input
   * makes the kernel reset the connection, and the peer loses our last words.
   */
  private sayGoodbye(): void {
    this.isOver = true;
    this.cancelStreams();
    this.outflow.close();
    if (this.isPaused) this.wire.resume();
    this.wire.end();
    this.destroyDeadline = this.now + this.limits.lingerMs;
    this.nextWake = 0;
  }

  private fail(code: ErrorCode, refusal: Refusal, message: string): void {
    if (this.isOver) return;
    this.context.refused(refusal);
    this.outflow.writer.goaway(Math.min(this.highestStream, this.lastServed), code, message);
    this.sayGoodbye();
  }

  private crash(error: unknown): void {
    this.context.crashed(error);
    if (this.isOver) return;
    this.outflow.writer.goaway(
      Math.min(this.highestStream, this.lastServed),
      ErrorCode.INTERNAL_ERROR,
      'internal error',
    );
    this.sayGoodbye();
  }

  private destroy(refusal?: Refusal): void {
    if (refusal !== undefined) this.context.refused(refusal);
    this.wireClosed();
    this.wire.destroy();
  }

  private cancelStreams(): void {
    for (const stream of this.streams.values()) {
      this.outflow.discard(stream);
      this.markClosed(stream);
      this.application.cancel(stream);
    }
    this.streams.clear();
    this.scheduled.length = 0;
    this.scheduledFrom = 0;
    this.assembly = undefined;
  }

  // ---------------------------------------------------------------- turns

  private endTurn(): void {
    if (!this.isOver) {
      if (this.pumpDue) {
        this.pumpDue = false;
        this.outflow.pump(false);
      }
      this.runScheduled();
    }
    this.flush();
  }

  /** Runs what was scheduled, within bounds of fairness. */
  runScheduled(): void {
    const { scheduled, limits } = this;
    let left = limits.dispatchesPerTurn;
    while (this.scheduledFrom < scheduled.length && !this.isOver) {
      if (this.outflow.isOverSoftLimit) return;
      if (left-- === 0) {
        this.context.runLater(this);
        return;
      }
      const stream = scheduled[this.scheduledFrom++]!;
      if (stream.isClosed) continue;
      stream.isRunning = true;
      stream.wasRun = true;
      this.application.run(stream);
      this.outflow.flushIfLong();
    }
    scheduled.length = 0;
    this.scheduledFrom = 0;
  }

  outputBegan(): void {
    if (!this.isReceiving) this.context.flushLater(this);
  }

  flush(): void {
    if (this.isGone) return;
    this.outflow.flush();
    if (this.isOver || !this.outflow.isOverSoftLimit) return;
    if (this.outflow.unsent > this.limits.hardOutputBytes) {
      this.destroy('slow_reader');
      return;
    }
    if (this.isPaused) return;
    // Two peers that both stop reading while their own output is stuck would wait for each other for ever: hence the timer.
    this.isPaused = true;
    this.wire.pause();
    this.unsentAtDeadline = this.outflow.unsent;
    this.outputDeadline = this.now + this.limits.unreadOutputMs;
    this.wakeAt(this.outputDeadline);
  }

  outputOverflowed(): void {
    if (!this.isGone) this.destroy('slow_reader');
  }

  private checkDeadlines(): void {
    const { now, limits } = this;
    if (now >= this.destroyDeadline) return this.destroy();
    if (this.isOver) return;
    if (now >= this.prefaceDeadline)
      return this.fail(ErrorCode.SETTINGS_TIMEOUT, 'preface_timeout', 'no SETTINGS in time');
    if (now >= this.settingsDeadline)
      return this.fail(ErrorCode.SETTINGS_TIMEOUT, 'settings_timeout', 'SETTINGS not acknowledged');
    if (now >= this.blockDeadline)
      return this.fail(ErrorCode.ENHANCE_YOUR_CALM, 'header_timeout', 'header block not ended in time');
    if (now >= this.cutDeadline) return this.cut(this.leavingReason);
    if (now >= this.outputDeadline) {
      const { unsent } = this.outflow;
      if (unsent >= this.unsentAtDeadline) return this.destroy('slow_reader');
      this.unsentAtDeadline = unsent;
      this.outputDeadline = now + limits.unreadOutputMs;
    }
    this.checkLiveness(now);
    if (now >= this.ageDeadline) this.leave('max_age', limits.maxAgeGraceMs);
    else if (this.streams.size === 0 && now >= this.idleSince + limits.maxIdleMs) this.leave('max_idle');
    if (now >= this.leaveDeadline) this.leaveForGood();
    if (now >= this.streamDeadline) this.expireStreams(now);
    for (const stream of this.outflow.overdue(now)) {
      this.context.refused('response_timeout');
      this.resetStream(stream, ErrorCode.CANCEL, undefined);
    }
  }

  private checkLiveness(now: number): void {
    if (now >= this.keepaliveDeadline) {
      // While we do not read, no answer can reach us.
      const isSilent = this.lastRead < this.keepaliveDeadline - this.limits.keepaliveTimeoutMs;
      if (isSilent && !this.isPaused) return this.destroy('keepalive_timeout');
      this.keepaliveDeadline = Infinity;
    }
    if (this.keepaliveDeadline === Infinity && now >= this.lastRead + this.limits.keepaliveMs && !this.isPaused) {
      this.keepaliveDeadline = now + this.limits.keepaliveTimeoutMs;
      this.outflow.writer.ping(false, KEEPALIVE_PING);
    }
  }

  private expireStreams(now: number): void {
    this.streamDeadline = Infinity;
    for (const stream of this.streams.values()) {
      if (stream.expiresAt <= now) {
        stream.expiresAt = Infinity;
        this.application.expire(stream);
      } else this.streamDeadline = Math.min(this.streamDeadline, stream.expiresAt);
    }
  }

  // ---------------------------------------------------------------- frames

  admit(type: number, flags: number, stream: number, length: number): void {
    if (!this.hasSettings && (type !== FrameType.SETTINGS || (flags & ACK) !== 0)) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'the first frame is not SETTINGS');
    }
    if (this.assembly !== undefined) {
      if (type !== FrameType.CONTINUATION || stream !== this.assembly.stream) {
        throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'a header block is interrupted');
      }
    } else if (type === FrameType.CONTINUATION) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'CONTINUATION without a header block');
    }
    admitFrame(type, flags, stream, length);
  }

  frame(type: number, flags: number, stream: number, source: Buffer, start: number, end: number): void {
    switch (type) {
      case FrameType.DATA:
        return this.onData(flags, stream, source, start, end);
      case FrameType.HEADERS:
        return this.onHeaders(flags, stream, source, start, end);
      case FrameType.PRIORITY:
        return this.onPriority(stream, source, start, end);
      case FrameType.RST_STREAM:
        return this.onReset(stream);
      case FrameType.SETTINGS:
        return (flags & ACK) === 0 ? this.onSettings(source, start, end) : this.onSettingsAck();
      case FrameType.PING:
        return this.onPing(flags, source, start, end);
      case FrameType.GOAWAY:
        return this.onGoaway();
      case FrameType.WINDOW_UPDATE:
        return this.onWindowUpdate(stream, source, start);
      case FrameType.CONTINUATION:
        return this.onContinuation(flags, source, start, end);
      default:
        return this.allowances.chargeIdleFrame(this.now);
    }
  }

  private onHeaders(flags: number, id: number, source: Buffer, frameStart: number, frameEnd: number): void {
    if ((id & 1) === 0)
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'a client stream has an odd number');
    let start = frameStart;
    let end = frameEnd;
    let dependsOnItself = false;
    if ((flags & (PADDED | PRIORITY)) !== 0) {
      if ((flags & PADDED) !== 0) end -= source[start++]!;
      if ((flags & PRIORITY) !== 0) {
        dependsOnItself = dependencyAt(source, start) === id;
        start += 5;
      }
      if (end < start)
        throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'padding longer than the frame');
    }
    const endStream = (flags & END_STREAM) !== 0;
    if ((flags & END_HEADERS) !== 0) return this.onBlock(id, endStream, dependsOnItself, source, start, end);
    this.assembly = new BlockAssembly(id, endStream, dependsOnItself, source, start, end);
    this.blockDeadline = this.now + this.limits.headerBlockMs;
    this.wakeAt(this.blockDeadline);
  }

  private onContinuation(flags: number, source: Buffer, start: number, end: number): void {
    const assembly = this.assembly!;
    if (
      ++assembly.continuations > this.limits.maxContinuations ||
      assembly.bytes + end - start > this.limits.maxHeaderBlockBytes
    ) {
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, 'header_block', 'header block too long');
    }
    assembly.add(source, start, end);
    if ((flags & END_HEADERS) === 0) return;
    this.assembly = undefined;
    this.blockDeadline = Infinity;
    this.onBlock(assembly.stream, assembly.endStream, assembly.dependsOnItself, assembly.block, 0, assembly.bytes);
  }

  private onBlock(
    id: number,
    endStream: boolean,
    dependsOnItself: boolean,
    source: Buffer,
    start: number,
    end: number,
  ): void {
    if (id <= this.highestStream) return this.onLaterBlock(id, endStream, source, start, end);
    this.highestStream = id;
    // Whatever becomes of the stream, the block is decoded: the table must follow.
    const { tables } = this;
    const head: Head<M> | Flaw =
      tables.memo.find(source, start, end, tables.dynamic.generation) ??
      this.context.headerBlocks.request(tables, source, start, end);
    if (id > this.lastServed) {
      this.closed.add(id, Ending.RESET_BY_US);
      return;
    }
    this.allowances.opened();
    if (this.placesTaken >= this.limits.maxConcurrentStreams) {
      // Before the acknowledgement the peer could not know.
      this.resetUnopened(id, ErrorCode.REFUSED_STREAM, 'streams', this.settingsToAck === 0);
      return;
    }
    if (
      dependsOnItself ||
      head === Flaw.MALFORMED ||
      (typeof head === 'object' && endStream && head.contentLength > 0)
    ) {
      this.resetUnopened(id, ErrorCode.PROTOCOL_ERROR, 'malformed', true);
      return;
    }
    const contentLength = typeof head === 'object' ? head.contentLength : -1;
    const stream = new Stream<S>(this, id, this.peer.initialWindowBytes, contentLength);
    stream.isRemoteEnded = endStream;
    this.streams.set(id, stream);
    this.placesTaken++;
    if (head === Flaw.OVERSIZED) {
      this.context.refused('header_list');
      stream.sendTrailers(this.application.oversized);
    } else this.application.open(stream, head.meaning, endStream);
  }

  /** A block on a stream that was opened before: trailers, or something late. */
  private onLaterBlock(id: number, endStream: boolean, source: Buffer, start: number, end: number): void {
    const { headerBlocks } = this.context;
    const stream = this.streams.get(id);
    if (stream === undefined) {
      const ending = this.closed.endingOf(id);
      if (ending === Ending.ENDED) {
        throw new ConnectionError(ErrorCode.STREAM_CLOSED, 'protocol_error', 'HEADERS on a closed stream');
      }
      if (ending === Ending.UNKNOWN) {
        throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'stream numbers go upwards');
      }
      headerBlocks.skip(this.tables, source, start, end);
      if (ending === Ending.RESET_BY_PEER) this.resetClosed(id, ErrorCode.STREAM_CLOSED);
      return;
    }
    const flaw = headerBlocks.trailers(this.tables, source, start, end);
    if (stream.isRemoteEnded) return this.resetStream(stream, ErrorCode.STREAM_CLOSED, 'stream_error');
    if (flaw === Flaw.OVERSIZED) return this.resetStream(stream, ErrorCode.ENHANCE_YOUR_CALM, 'header_list');
    if (flaw === Flaw.MALFORMED || !endStream || (stream.contentLeft ?? 0) > 0) {
      return this.resetStream(stream, ErrorCode.PROTOCOL_ERROR, 'malformed');
    }
    stream.isRemoteEnded = true;
    stream.messageEnded();
    this.application.data(stream, NOTHING, 0, 0, true);
  }

  private onData(flags: number, id: number, source: Buffer, frameStart: number, frameEnd: number): void {
    let start = frameStart;
    let end = frameEnd;
    if ((flags & PADDED) !== 0) {
      end -= source[start++]!;
      if (end < start)
        throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'padding longer than the frame');
    }
    const charged = frameEnd - frameStart;
    this.chargeConnectionWindow(charged);
    const stream = this.streams.get(id);
    if (stream === undefined) return this.onLateData(id);
    if (stream.isRemoteEnded) return this.resetStream(stream, ErrorCode.STREAM_CLOSED, 'stream_error');
    if (charged > stream.receiveWindow)
      return this.resetStream(stream, ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error');

    const length = end - start;
    const endStream = (flags & END_STREAM) !== 0;
    stream.receiveWindow -= charged;
    if (stream.contentLeft !== undefined) {
      stream.contentLeft -= length;
      if (stream.contentLeft < 0 || (endStream && stream.contentLeft > 0)) {
        return this.resetStream(stream, ErrorCode.PROTOCOL_ERROR, 'malformed');
      }
    }
    if (endStream) {
      stream.isRemoteEnded = true;
      stream.messageEnded();
    } else {
      if (charged > length) this.refund(stream, charged - length);
      if (length === 0) this.allowances.chargeFault(this.now);
      else if (length < this.limits.smallDataBytes) {
        stream.smallDataCharged += this.allowances.chargeSmallData(this.now, length);
      }
      if (this.isOver) return;
    }
    this.application.data(stream, source, start, end, endStream);
  }

  private onLateData(id: number): void {
    if (this.isIdle(id))
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'DATA on an idle stream');
    const ending = this.closed.endingOf(id);
    if (ending === Ending.ENDED || ending === Ending.RESET_BY_PEER) this.resetClosed(id, ErrorCode.STREAM_CLOSED);
    else if (ending === Ending.UNKNOWN) this.allowances.chargeIdleFrame(this.now);
  }

  private onPriority(id: number, source: Buffer, start: number, end: number): void {
    this.allowances.chargeIdleFrame(this.now);
    const isWrongLength = end - start !== 5;
    if (!isWrongLength && dependencyAt(source, start) !== id) return;
    const code = isWrongLength ? ErrorCode.FRAME_SIZE_ERROR : ErrorCode.PROTOCOL_ERROR;
    const stream = this.streams.get(id);
    if (stream !== undefined) return this.resetStream(stream, code, 'stream_error');
    // An idle stream cannot be reset.
    if (this.isIdle(id)) throw new ConnectionError(code, 'protocol_error', 'PRIORITY of an idle stream is wrong');
    this.resetClosed(id, code);
  }

  private onReset(id: number): void {
    if (this.isIdle(id))
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'RST_STREAM on an idle stream');
    const stream = this.streams.get(id);
    if (stream === undefined) return;
    if (!stream.wasRun) this.allowances.chargeReset(this.now);
    this.closeStream(stream, Ending.RESET_BY_PEER);
    this.application.cancel(stream);
  }

  private onSettings(source: Buffer, start: number, end: number): void {
    const isFirst = !this.hasSettings;
    this.hasSettings = true;
    this.prefaceDeadline = Infinity;
    if (isFirst) this.settingsDeadline = this.now + this.limits.settingsAckMs;
    if (end - start > this.limits.settingsEntries * 6) {
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, 'settings_flood', 'too many settings in one frame');
    }
    this.allowances.chargeSettings(this.now);
    const { peer } = this;
    const before = peer.initialWindowBytes;
    for (let unknown = peer.apply(source, start, end); unknown > 0; unknown--)
      this.allowances.chargeIdleFrame(this.now);
    if (peer.initialWindowBytes !== before) this.moveSendWindows(peer.initialWindowBytes - before);
    if (peer.smallestHeaderTableBytes < DEFAULT_HEADER_TABLE_BYTES) this.outflow.oweTableSizeUpdate();
    if (this.mayControl()) this.outflow.writer.settingsAck();
  }

  /** Section 6.9.2: open streams follow a new SETTINGS_INITIAL_WINDOW_SIZE, below zero too. */
  private moveSendWindows(difference: number): void {
    for (const stream of this.streams.values()) {
      if (stream.sendWindow + difference > MAX_31_BITS) {
        throw new ConnectionError(
          ErrorCode.FLOW_CONTROL_ERROR,
          'flow_control_error',
          'SETTINGS_INITIAL_WINDOW_SIZE overflows a window',
        );
      }
      stream.sendWindow += difference;
    }
    this.pumpDue = true;
  }

  private onSettingsAck(): void {
    if (this.settingsToAck === 0) return this.allowances.chargeFault(this.now);
    this.settingsToAck--;
    this.settingsDeadline = Infinity;
  }

  private onPing(flags: number, source: Buffer, start: number, end: number): void {
    if ((flags & ACK) !== 0) {
      const isGoawaySeen = this.leaving === Leaving.ANNOUNCED && GOAWAY_PING.equals(source.subarray(start, end));
      if (isGoawaySeen) this.leaveForGood();
      return;
    }
    this.allowances.chargePing(this.now);
    if (!this.isOver && this.mayControl()) this.outflow.writer.ping(true, source.subarray(start, end));
  }

  /** The peer opens nothing more; what is open finishes. Its last-stream-id is about pushes, which we never make. */
  private onGoaway(): void {
    if (this.leaving === Leaving.FINAL) return;
    this.leaving = Leaving.FINAL;
    this.leaveDeadline = Infinity;
    this.ageDeadline = Infinity;
    this.lastServed = this.highestStream;
    this.outflow.writer.goaway(this.lastServed, ErrorCode.NO_ERROR, '');
    this.finishLeaving();
  }

  private onWindowUpdate(id: number, source: Buffer, start: number): void {
    this.allowances.chargeWindowUpdate();
    if (this.isOver) return;
    const increment = source.readUInt32BE(start) & MAX_31_BITS;
    if (id === 0) {
      if (increment === 0) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'WINDOW_UPDATE of 0');
      if (!this.outflow.widen(increment)) {
        throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error', 'connection window too large');
      }
      this.pumpDue = true;
      return;
    }
    if (this.isIdle(id))
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'WINDOW_UPDATE on an idle stream');
    const stream = this.streams.get(id);
    if (stream === undefined) return;
    if (increment === 0) return this.resetStream(stream, ErrorCode.PROTOCOL_ERROR, 'stream_error');
    if (stream.sendWindow + increment > MAX_31_BITS) {
      return this.resetStream(stream, ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error');
    }
    stream.sendWindow += increment;
    this.pumpDue = true;
  }

  /** Section 5.1.1: above all that the peer has opened, or a number that is not the peer's to open. */
  private isIdle(id: number): boolean {
    return id > this.highestStream || (id & 1) === 0;
  }

  // ---------------------------------------------------------------- what the peer may still send

  private chargeConnectionWindow(octets: number): void {
    if (octets > this.receiveWindow) {
      throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, 'flow_control_error', 'connection window exceeded');
    }
    this.receiveWindow -= octets;
    // Refunded whatever becomes of the octets: what is kept of them is bounded by other means than this window.
    this.unrefunded += octets;
    if (this.unrefunded * 2 >= this.limits.connectionWindowBytes && this.mayControl()) {
      this.outflow.writer.windowUpdate(0, this.unrefunded);
      this.receiveWindow += this.unrefunded;
      this.unrefunded = 0;
    }
  }

  refund(stream: Stream<S>, octets: number): void {
    stream.unrefunded += octets;
    if (stream.unrefunded * 2 < DEFAULT_WINDOW_BYTES || !this.mayControl()) return;
    this.outflow.writer.windowUpdate(stream.id, stream.unrefunded);
    stream.receiveWindow += stream.unrefunded;
    stream.unrefunded = 0;
  }

  refundSmallData(stream: Stream<S>): void {
    this.allowances.refundSmallData(stream.smallDataCharged);
    stream.smallDataCharged = 0;
  }

  private mayControl(): boolean {
    if (this.outflow.mayControl()) return true;
    this.fail(ErrorCode.ENHANCE_YOUR_CALM, 'control_flood', 'answers to control frames are not read');
    return false;
  }

  // ---------------------------------------------------------------- streams

  schedule(stream: Stream<S>): void {
    this.scheduled.push(stream);
    if (!this.isReceiving && this.scheduled.length === 1) this.context.runLater(this);
  }

  releasePlace(): void {
    this.placesTaken--;
  }

  expireStreamAt(stream: Stream<S>, time: number): void {
    stream.expiresAt = time;
    if (time < this.streamDeadline) this.streamDeadline = time;
    this.wakeAt(time);
  }

  hold(stream: Stream<S>, octets: number): boolean {
    const { context, limits } = this;
    if (this.held + octets > limits.maxHeldBytesPerConnection || context.held + octets > limits.maxHeldBytes) {
      context.refused('request_memory');
      return false;
    }
    stream.held += octets;
    this.held += octets;
    context.held += octets;
    return true;
  }

  letGo(stream: Stream<S>, octets: number): void {
    stream.held -= octets;
    this.held -= octets;
    this.context.held -= octets;
  }

  sendHeaders(stream: Stream<S>, block: Uint8Array): void {
    this.outflow.headers(stream.id, block);
  }

  sendData(stream: Stream<S>, first: Uint8Array, second: Uint8Array): void {
    this.outflow.data(stream, first, second);
  }

  sendEnd(stream: Stream<S>, trailers: Uint8Array): void {
    this.outflow.end(stream, trailers);
  }

  sentHeaders(): void {
    this.allowances.sentHeaders();
  }

  sentData(): void {
    this.allowances.sentData();
  }

  responseEnded(stream: Stream<S>): void {
    this.allowances.answered();
    if (stream.isRemoteEnded) {
      this.closeStream(stream, Ending.ENDED);
      return;
    }
    // Section 8.1: the rest of the request is not wanted.
    if (this.mayControl()) this.outflow.writer.reset(stream.id, ErrorCode.NO_ERROR);
    this.closeStream(stream, Ending.RESET_BY_US);
  }

  outputDrained(stream: Stream<S>): void {
    this.application.drained(stream);
  }

  /** Ends a stream before its time, and counts it against the peer. */
  resetStream(stream: Stream<S>, code: ErrorCode, refusal?: Refusal): void {
    if (stream.isClosed) return;
    if (refusal !== undefined) this.context.refused(refusal);
    this.closeStream(stream, Ending.RESET_BY_US);
    this.application.cancel(stream);
    this.writeReset(stream.id, code, true);
  }

  /** A stream that is refused as it opens. */
  private resetUnopened(id: number, code: ErrorCode, refusal: Refusal, isFault: boolean): void {
    this.context.refused(refusal);
    this.closed.add(id, Ending.RESET_BY_US);
    this.writeReset(id, code, isFault);
  }

  private resetClosed(id: number, code: ErrorCode): void {
    this.context.refused('stream_error');
    this.closed.markReset(id);
    this.writeReset(id, code, true);
  }

  private writeReset(id: number, code: ErrorCode, isFault: boolean): void {
    if (this.isOver || !this.mayControl()) return;
    this.outflow.writer.reset(id, code);
    if (isFault) this.allowances.chargeFault(this.now);
  }

  private closeStream(stream: Stream<S>, ending: Ending): void {
    if (stream.isClosed) return;
    this.streams.delete(stream.id);
    this.closed.add(stream.id, ending);
    this.outflow.discard(stream);
    this.markClosed(stream);
    if (this.streams.size === 0) {
      this.idleSince = this.now;
      if (this.limits.maxIdleMs !== Infinity) this.wakeAt(this.now + this.limits.maxIdleMs);
    }
    this.finishLeaving();
  }

  private markClosed(stream: Stream<S>): void {
    if (stream.held > 0) this.letGo(stream, stream.held);
    stream.isClosed = true;
    if (!stream.isRunning) this.placesTaken--;
  }
}

/** The stream that priority fields depend on; the exclusive bit is not of the number. */
const dependencyAt = (source: Buffer, start: number): number => source.readUInt32BE(start) & MAX_31_BITS;
