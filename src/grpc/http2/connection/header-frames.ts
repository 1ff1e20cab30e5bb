import { ConnectionError, protocolError } from '../protocol';
import { ErrorCode, Flag } from '../protocol';
import { dependencyAt } from '../frames/validate-frame';
import { BlockAssembly } from '../block-assembly';
import { HeaderProblem, HeaderTables, type DecodedHead } from '../header-reader';
import type { AbuseLimits } from '../limits/abuse-limits';
import { Ending } from '../streams/closed-streams';
import type { ConnectionControl, ServerContext } from '../streams/connection-control';
import type { Streams } from '../streams/streams';
import type { SettingsExchange } from './settings-exchange';

const { END_STREAM, END_HEADERS, PADDED, PRIORITY } = Flag;
const PRIORITY_BYTES = 5;
const EMPTY = Buffer.alloc(0);

export interface HeaderFramesParts<M, S> {
  readonly control: ConnectionControl;
  readonly context: ServerContext<M, S>;
  readonly abuseLimits: AbuseLimits;
  readonly streams: Streams<S>;
  readonly settings: Pick<SettingsExchange<S>, 'isAcknowledged'>;
}

/** HEADERS and CONTINUATION frames (RFC 9113, sections 6.2 and 6.10), which carry requests and trailers. */
export class HeaderFrames<M, S> {
  readonly #control: ConnectionControl;
  readonly #context: ServerContext<M, S>;
  readonly #abuseLimits: AbuseLimits;
  readonly #streams: Streams<S>;
  readonly #settings: HeaderFramesParts<M, S>['settings'];
  readonly #tables = new HeaderTables<M>();
  /** When the incomplete block must be complete. */
  deadline = Infinity;
  /** The incomplete block, if there is one. */
  #assembly: BlockAssembly | undefined;
  // The HEADERS frame of the current block. Fields, as an object for them would be an allocation per request.
  #stream = 0;
  #endStream = false;
  #dependsOnItself = false;

  constructor({ control, context, abuseLimits, streams, settings }: HeaderFramesParts<M, S>) {
    this.#control = control;
    this.#context = context;
    this.#abuseLimits = abuseLimits;
    this.#streams = streams;
    this.#settings = settings;
  }

  /** The stream of the incomplete header block; undefined if there is none. */
  get incompleteBlock(): number | undefined {
    return this.#assembly === undefined ? undefined : this.#stream;
  }

  check(now: number): void {
    if (now >= this.deadline) {
      this.#control.fail(ErrorCode.ENHANCE_YOUR_CALM, 'header_timeout', 'header block not ended in time');
    }
  }

  onHeaders(flags: number, id: number, source: Buffer, frameStart: number, frameEnd: number): void {
    if ((id & 1) === 0) protocolError('a client opens streams with odd identifiers only');
    let start = frameStart;
    let end = frameEnd;
    this.#stream = id;
    this.#endStream = (flags & END_STREAM) !== 0;
    this.#dependsOnItself = false;
    if ((flags & (PADDED | PRIORITY)) !== 0) {
      if ((flags & PADDED) !== 0) {
        end -= source[start]!;
        start += 1;
      }
      if ((flags & PRIORITY) !== 0) {
        this.#dependsOnItself = dependencyAt(source, start) === id;
        start += PRIORITY_BYTES;
      }
      if (end < start) protocolError('padding longer than the frame');
    }
    if ((flags & END_HEADERS) !== 0) return this.#onBlock(source, start, end);
    this.#assembly = new BlockAssembly(source, start, end);
    this.deadline = this.#control.now + this.#context.limits.headerBlockMs;
    this.#control.wakeAt(this.deadline);
  }

  onContinuation(flags: number, source: Buffer, start: number, end: number): void {
    const assembly = this.#assembly!;
    const { limits } = this.#context;
    if (
      assembly.continuations >= limits.maxContinuations ||
      assembly.bytes + end - start > limits.maxHeaderBlockBytes
    ) {
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, 'header_block', 'header block too long');
    }
    assembly.add(source, start, end);
    if ((flags & END_HEADERS) === 0) return;
    this.discardBlock();
    this.#onBlock(assembly.block, 0, assembly.bytes);
  }

  /** Drops the incomplete block. */
  discardBlock(): void {
    this.#assembly = undefined;
    this.deadline = Infinity;
  }

  #onBlock(source: Buffer, start: number, end: number): void {
    const id = this.#stream;
    const tables = this.#tables;
    const context = this.#context;
    const streams = this.#streams;
    const { ids } = streams;
    if (!ids.isIdle(id)) return this.#onLaterBlock(source, start, end);
    ids.open(id);
    // Decoded even if the stream is rejected: the dynamic table must stay in step with the peer's.
    const head: DecodedHead<M> | HeaderProblem =
      tables.memo.find(source, start, end, tables.dynamic.generation) ??
      context.headerBlocks.request(tables, source, start, end);
    if (ids.isAfterGoaway(id)) return streams.ignore(id);
    this.#abuseLimits.streamOpened();
    if (!streams.hasFreeSlot) {
      // Before it has acknowledged our SETTINGS, the peer cannot know the limit: this is then no fault.
      return streams.resets.unopened(id, ErrorCode.REFUSED_STREAM, 'streams', this.#settings.isAcknowledged);
    }
    if (
      this.#dependsOnItself ||
      head === HeaderProblem.MALFORMED ||
      (typeof head === 'object' && this.#endStream && head.contentLength > 0)
    ) {
      return streams.resets.unopened(id, ErrorCode.PROTOCOL_ERROR, 'malformed', true);
    }
    const stream = streams.add(id, typeof head === 'object' ? head.contentLength : -1, this.#endStream);
    if (head === HeaderProblem.OVERSIZED) {
      this.#control.rejected('header_list');
      stream.sendTrailers(context.application.oversized);
    } else context.application.open(stream, head.meaning, this.#endStream);
  }

  /** A block on a stream that has been opened before: trailers, or a late frame. */
  #onLaterBlock(source: Buffer, start: number, end: number): void {
    const id = this.#stream;
    const streams = this.#streams;
    const { headerBlocks, application } = this.#context;
    const stream = streams.get(id);
    if (stream === undefined) {
      const ending = streams.ids.endingOf(id);
      if (ending === Ending.ENDED) {
        throw new ConnectionError(ErrorCode.STREAM_CLOSED, 'protocol_error', 'HEADERS on a closed stream');
      }
      if (ending === Ending.UNKNOWN) protocolError('stream identifiers must increase');
      headerBlocks.skip(this.#tables, source, start, end);
      if (ending === Ending.RESET_BY_PEER) streams.resets.closed(id, ErrorCode.STREAM_CLOSED);
      return;
    }
    const problem = headerBlocks.trailers(this.#tables, source, start, end);
    if (stream.isRemoteEnded) return streams.resetStream(stream, ErrorCode.STREAM_CLOSED, 'stream_error');
    if (problem === HeaderProblem.OVERSIZED) {
      return streams.resetStream(stream, ErrorCode.ENHANCE_YOUR_CALM, 'header_list');
    }
    if (problem === HeaderProblem.MALFORMED || !this.#endStream || (stream.contentLeft ?? 0) > 0) {
      return streams.resetStream(stream, ErrorCode.PROTOCOL_ERROR, 'malformed');
    }
    stream.isRemoteEnded = true;
    stream.messageEnded();
    application.data(stream, EMPTY, 0, 0, true);
  }
}
