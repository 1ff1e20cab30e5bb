import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';
import type { Log } from '../../log/log';
import type { LiveEvent } from '../../operators/live-answers';
import type { Operator } from '../../operators/operator';
import { EVENT_STREAM, endWithCaller } from '../connections';
import { HttpError, responseTo } from '../errors';
import { OPERATOR_LIMITS } from '../limits';

/** Between two events. */
const INTERVAL_MS = 1_000;
/** A viewer with more unread bytes gets no event… */
const MAX_UNREAD_BYTES = 64 * 1024;
/** …and is disconnected after as many skipped ones. */
const MAX_SKIPPED = 60;

interface Viewer {
  readonly res: ServerResponse;
  /** Whether it sees what callers have sent; read for each event, as the token may have changed. */
  readonly seesCallers: () => boolean;
  skipped: number;
}

/** An event as it is sent. */
interface Encoded {
  readonly open: Buffer;
  /** With what callers have sent. */
  readonly full: Buffer;
}

/**
 * Streams of server-sent events that show the service live. An event is made once for all viewers, and only while there
 * are any.
 */
export class EventStreams {
  readonly #operator: Pick<Operator, 'live'>;
  readonly #log: Log;
  readonly #viewers = new Set<Viewer>();
  #timer: NodeJS.Timeout | undefined;
  #isMaking = false;
  #last: Encoded | undefined;
  #id = 0;

  constructor(operator: Pick<Operator, 'live'>, log: Log) {
    this.#operator = operator;
    this.#log = log;
  }

  /**
   * Answers a request with a stream, which begins with the last event.
   *
   * @throws HttpError with status 503 when there are as many as are allowed
   */
  open(ctx: Context, seesCallers: () => boolean): void {
    const { maxStreams } = OPERATOR_LIMITS;
    if (this.#viewers.size >= maxStreams) {
      const message = `${maxStreams} event streams are open already: close a console, or try again later`;
      throw new HttpError({ status: 503, code: 'too_many_streams', message, headers: { 'Retry-After': '5' } });
    }
    ctx.set({ 'Content-Type': EVENT_STREAM, 'Cache-Control': 'no-store, no-transform', 'X-Accel-Buffering': 'no' });
    ctx.status = 200;
    if (ctx.method === 'HEAD') return;
    ctx.respond = false;
    const viewer: Viewer = { res: ctx.res, seesCallers, skipped: 0 };
    this.#viewers.add(viewer);
    ctx.res.on('error', () => undefined).once('close', () => this.#left(viewer));
    endWithCaller(ctx);
    ctx.res.flushHeaders();
    this.#timer ??= setInterval(() => void this.#make(), INTERVAL_MS);
    if (this.#last === undefined) void this.#make();
    else send(viewer, this.#last);
  }

  /** Ends all streams, for a shutdown. */
  close(): void {
    for (const { res } of this.#viewers) res.end('event: bye\ndata: the service stops\n\n');
  }

  #left(viewer: Viewer): void {
    this.#viewers.delete(viewer);
    if (this.#viewers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#last = undefined;
  }

  async #make(): Promise<void> {
    // A worker that stands still may delay an event.
    if (this.#isMaking) return;
    this.#isMaking = true;
    try {
      const encoded = this.#encode(await this.#operator.live());
      if (this.#viewers.size > 0) this.#last = encoded;
      for (const viewer of this.#viewers) send(viewer, encoded);
    } catch (error) {
      responseTo(error, this.#log);
    } finally {
      this.#isMaking = false;
    }
  }

  #encode(event: LiveEvent): Encoded {
    this.#id += 1;
    const [open, full] = [{ ...event, offenders: null }, event].map((shown) =>
      Buffer.from(`id: ${this.#id}\ndata: ${JSON.stringify(shown)}\n\n`),
    );
    return { open: open!, full: full! };
  }
}

/** Skips a viewer that does not read: each event is the state of a second, so that only a point is missing. */
function send(viewer: Viewer, { open, full }: Encoded): void {
  const { res, seesCallers } = viewer;
  if (res.writableLength <= MAX_UNREAD_BYTES) {
    viewer.skipped = 0;
    try {
      res.write(seesCallers() ? full : open);
    } catch {
      // The token is another one by now: the answer to the next request says so.
      res.end();
    }
    return;
  }
  viewer.skipped += 1;
  if (viewer.skipped > MAX_SKIPPED) res.destroy();
}
