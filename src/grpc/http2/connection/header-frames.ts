import type { AbuseLimits } from '../limits/abuse-limits';
import { BlockAssembly } from '../headers/block-assembly';
import { Ending } from '../streams/closed-streams';
import { ConnectionError } from '../frames/errors';
import { Flaw, type Head, HeaderTables } from '../headers/header-blocks';
import { dependencyAt } from '../frames/validate-frame';
import { ErrorCode, Flag } from '../frames/protocol';
import type { ServerContext } from '../streams/server-context';
import type { SettingsExchange } from './settings-exchange';
import type { Streams } from '../streams/streams';
import type { ConnectionControl } from '../streams/connection-control';

const { END_STREAM, END_HEADERS, PADDED, PRIORITY } = Flag;
const NOTHING = Buffer.alloc(0);

/** HEADERS and CONTINUATION (RFC 9113, sections 6.2 and 6.10): from them come requests, and trailers. */
export class HeaderFrames<M, S> {
  readonly #whole: ConnectionControl;
  readonly #context: ServerContext<M, S>;
  readonly #streams: Streams<S>;
  readonly #settings: SettingsExchange<S>;
  readonly #allowances: AbuseLimits;
  /** When the block that has begun must have ended. */
  deadline = Infinity;
  #assembly: BlockAssembly | undefined;
  readonly #tables = new HeaderTables<M>();

  constructor(
    whole: ConnectionControl,
    context: ServerContext<M, S>,
    streams: Streams<S>,
    settings: SettingsExchange<S>,
    allowances: AbuseLimits,
  ) {
    this.#whole = whole;
    this.#context = context;
    this.#streams = streams;
    this.#settings = settings;
    this.#allowances = allowances;
  }

  /** The stream whose header block has begun and not ended; undefined where there is none. */
  get unended(): number | undefined {
    return this.#assembly?.stream;
  }

  check(now: number): void {
    if (now >= this.deadline) {
      this.#whole.fail(ErrorCode.ENHANCE_YOUR_CALM, 'header_timeout', 'header block not ended in time');
    }
  }

  onHeaders(flags: number, id: number, source: Buffer, frameStart: number, frameEnd: number): void {
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
    if ((flags & END_HEADERS) !== 0) return this.#onBlock(id, endStream, dependsOnItself, source, start, end);
    this.#assembly = new BlockAssembly(id, endStream, dependsOnItself, source, start, end);
    this.deadline = this.#whole.now + this.#context.limits.headerBlockMs;
    this.#whole.wakeAt(this.deadline);
  }

  onContinuation(flags: number, source: Buffer, start: number, end: number): void {
    const assembly = this.#assembly!;
    const { limits } = this.#context;
    if (
      ++assembly.continuations > limits.maxContinuations ||
      assembly.bytes + end - start > limits.maxHeaderBlockBytes
    ) {
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, 'header_block', 'header block too long');
    }
    assembly.add(source, start, end);
    if ((flags & END_HEADERS) === 0) return;
    this.abandon();
    this.#onBlock(assembly.stream, assembly.endStream, assembly.dependsOnItself, assembly.block, 0, assembly.bytes);
  }

  /** Keeps nothing of a block that has begun. */
  abandon(): void {
    this.#assembly = undefined;
    this.deadline = Infinity;
  }

  #onBlock(id: number, endStream: boolean, dependsOnItself: boolean, source: Buffer, start: number, end: number): void {
    const tables = this.#tables;
    const context = this.#context;
    const streams = this.#streams;
    const { numbers } = streams;
    if (!numbers.isIdle(id)) return this.#onLaterBlock(id, endStream, source, start, end);
    numbers.use(id);
    // Whatever becomes of the stream, the block is decoded: the table must follow.
    const head: Head<M> | Flaw =
      tables.memo.find(source, start, end, tables.dynamic.generation) ??
      context.headerBlocks.request(tables, source, start, end);
    if (numbers.isTooLate(id)) return streams.ignore(id);
    this.#allowances.opened();
    if (!streams.hasPlace) {
      // Before the acknowledgement the peer could not know.
      return streams.resetUnopened(id, ErrorCode.REFUSED_STREAM, 'streams', this.#settings.isAcknowledged);
    }
    if (
      dependsOnItself ||
      head === Flaw.MALFORMED ||
      (typeof head === 'object' && endStream && head.contentLength > 0)
    ) {
      return streams.resetUnopened(id, ErrorCode.PROTOCOL_ERROR, 'malformed', true);
    }
    const stream = streams.add(id, typeof head === 'object' ? head.contentLength : -1, endStream);
    if (head === Flaw.OVERSIZED) {
      context.refused('header_list');
      stream.sendTrailers(context.application.oversized);
    } else context.application.open(stream, head.meaning, endStream);
  }

  /** A block on a stream that was opened before: trailers, or something late. */
  #onLaterBlock(id: number, endStream: boolean, source: Buffer, start: number, end: number): void {
    const streams = this.#streams;
    const { headerBlocks, application } = this.#context;
    const stream = streams.get(id);
    if (stream === undefined) {
      const ending = streams.numbers.endingOf(id);
      if (ending === Ending.ENDED) {
        throw new ConnectionError(ErrorCode.STREAM_CLOSED, 'protocol_error', 'HEADERS on a closed stream');
      }
      if (ending === Ending.UNKNOWN) {
        throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, 'protocol_error', 'stream numbers go upwards');
      }
      headerBlocks.skip(this.#tables, source, start, end);
      if (ending === Ending.RESET_BY_PEER) streams.resetClosed(id, ErrorCode.STREAM_CLOSED);
      return;
    }
    const flaw = headerBlocks.trailers(this.#tables, source, start, end);
    if (stream.isRemoteEnded) return streams.resetStream(stream, ErrorCode.STREAM_CLOSED, 'stream_error');
    if (flaw === Flaw.OVERSIZED) return streams.resetStream(stream, ErrorCode.ENHANCE_YOUR_CALM, 'header_list');
    if (flaw === Flaw.MALFORMED || !endStream || (stream.contentLeft ?? 0) > 0) {
      return streams.resetStream(stream, ErrorCode.PROTOCOL_ERROR, 'malformed');
    }
    stream.isRemoteEnded = true;
    stream.messageEnded();
    application.data(stream, NOTHING, 0, 0, true);
  }
}
