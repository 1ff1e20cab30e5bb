import type { Readable } from 'node:stream';
import type { Channel } from '../channel';
import { TOPICS } from '../topics';
import { AnswerStream } from './answer-stream';
import { ChannelClosedError, RequestError } from './request-error';
import { ASK, CHUNK_BYTES, REPLY, readRequestFrame, writeRequestFrame } from './request-frames';

/** Asks the other end of a channel, which answers with `answerRequests`. One object for each channel. */
export class Requests {
  readonly #channel: Channel;
  readonly #inFlight = new Map<number, AnswerStream>();
  #lastId = 0;
  #isClosed = false;

  constructor(channel: Channel) {
    this.#channel = channel;
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
    channel.frames(TOPICS.answers).subscribe({
      next: (body) => this.#arrived(body),
      complete: () => {
        this.#isClosed = true;
        for (const answer of this.#inFlight.values()) answer.destroy(new ChannelClosedError());
      },
    });
  }

  /**
   * Sends a request. The answer is a stream of chunks, of which a few are on their way at a time, so that its reader sets the pace. It fails with a
   * {@link RequestError} when the other end cannot answer, and with a {@link ChannelClosedError} when it is gone. To destroy the
   * stream cancels the request.
   *
   * @param parameters have to be JSON, of any length
   */
  ask(method: string, parameters: unknown = {}): Readable {
    this.#lastId = (this.#lastId + 1) >>> 0;
    const id = this.#lastId;
    const answer = new AnswerStream({
      onConsumed: (chunks) => {
        const credit = Buffer.alloc(4);
        credit.writeUInt32LE(chunks);
        this.#send(id, ASK.credit, credit);
      },
      onClosed: () => {
        // Unless the answer has ended.
        if (this.#inFlight.delete(id)) this.#send(id, ASK.cancel);
      },
    });
    if (this.#isClosed) answer.destroy(new ChannelClosedError());
    else {
      this.#inFlight.set(id, answer);
      this.#sendRequest(id, Buffer.from(JSON.stringify({ method, parameters })));
    }
    return answer;
  }

  #sendRequest(id: number, request: Buffer): void {
    let at = 0;
    for (; request.length - at > CHUNK_BYTES; at += CHUNK_BYTES) {
      this.#send(id, ASK.part, request.subarray(at, at + CHUNK_BYTES));
    }
    this.#send(id, ASK.request, request.subarray(at));
  }

  #arrived(body: Buffer): void {
    const { id, kind, rest } = readRequestFrame(body);
    const answer = this.#inFlight.get(id);
    // The answers to cancelled requests.
    if (answer === undefined) return;
    if (kind === REPLY.chunk) {
      answer.arrived(rest);
      return;
    }
    this.#inFlight.delete(id);
    if (kind === REPLY.end) {
      answer.ended();
      return;
    }
    const { message, detail } = JSON.parse(rest.toString()) as { message: string; detail?: unknown };
    answer.destroy(new RequestError(message, detail));
  }

  #send(id: number, kind: number, rest?: Uint8Array): void {
    this.#channel.send(TOPICS.requests, writeRequestFrame(id, kind, rest));
  }
}
