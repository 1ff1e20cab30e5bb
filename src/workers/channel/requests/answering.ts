import type { Channel } from '../channel';
import { TOPICS } from '../topics';
import { RequestError } from './request-error';
import { ASK, CHUNK_BYTES, INITIAL_CREDIT, REPLY, readRequestFrame, writeRequestFrame } from './request-frames';

/**
 * Answers a request with chunks of any size, the next one requested when there is room for it. What it throws fails the request.
 *
 * @param parameters what the other end sent, as JSON
 * @param signal aborted when the request is cancelled or the channel closes
 */
export type RequestHandler = (parameters: unknown, signal: AbortSignal) => AsyncIterable<Uint8Array | string>;

/** Answers the requests of the other end, until the channel closes. */
export function answerRequests(channel: Channel, handlers: Readonly<Record<string, RequestHandler>>): void {
  const inFlight = new Map<number, Answering>();
  /** Of the request whose last part has not arrived: the parts of one follow each other. */
  let parts: Buffer[] = [];
  // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
  channel.frames(TOPICS.requests).subscribe({
    next: (body) => {
      const { id, kind, rest } = readRequestFrame(body);
      if (kind === ASK.credit) inFlight.get(id)?.grant(rest.readUInt32LE(0));
      else if (kind === ASK.cancel) inFlight.get(id)?.cancel();
      else if (kind === ASK.part) parts.push(Buffer.from(rest));
      else {
        const request = Buffer.concat([...parts, rest]).toString();
        parts = [];
        const answering = new Answering(channel, id);
        inFlight.set(id, answering);
        void answering.run(handlers, request).finally(() => inFlight.delete(id));
      }
    },
    complete: () => inFlight.forEach((answering) => answering.cancel()),
  });
}

/** One request, from its arrival to the last frame of its answer. */
class Answering {
  readonly #channel: Channel;
  readonly #id: number;
  readonly #abort = new AbortController();
  #credit = INITIAL_CREDIT;
  #resume: () => void = () => undefined;

  constructor(channel: Channel, id: number) {
    this.#channel = channel;
    this.#id = id;
  }

  grant(chunks: number): void {
    this.#credit += chunks;
    this.#resume();
  }

  cancel(): void {
    this.#abort.abort();
    this.#resume();
  }

  async run(handlers: Readonly<Record<string, RequestHandler>>, request: string): Promise<void> {
    try {
      const { method, parameters } = JSON.parse(request) as { method: string; parameters: unknown };
      const handler = Object.hasOwn(handlers, method) ? handlers[method] : undefined;
      if (handler === undefined) throw new RequestError(`there is no method ${method}`);
      for await (const chunk of handler(parameters, this.#abort.signal)) {
        await this.#sendInPieces(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
        if (this.#isCancelled) return;
      }
      this.#reply(REPLY.end);
    } catch (error) {
      if (!this.#isCancelled) this.#reply(REPLY.error, JSON.stringify(describe(error)));
    }
  }

  get #isCancelled(): boolean {
    return this.#abort.signal.aborted;
  }

  async #sendInPieces(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length && !this.#isCancelled; at += CHUNK_BYTES) {
      if (this.#credit === 0) await new Promise<void>((resolve) => (this.#resume = resolve));
      if (this.#isCancelled) return;
      this.#credit -= 1;
      this.#reply(REPLY.chunk, bytes.subarray(at, at + CHUNK_BYTES));
    }
  }

  #reply(kind: number, rest?: Uint8Array | string): void {
    this.#channel.send(TOPICS.answers, writeRequestFrame(this.#id, kind, rest));
  }
}

/** What the asking end makes a `RequestError` of. */
function describe(error: unknown): { readonly message: string; readonly detail?: unknown } {
  if (error instanceof RequestError) return { message: error.message, detail: error.detail };
  return { message: error instanceof Error ? error.message : String(error) };
}
