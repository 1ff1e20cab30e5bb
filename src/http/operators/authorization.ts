import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import type { Log } from '../../streams/ports/log';
import { asError } from '../../text/thrown';
import { HttpError } from '../server/errors';

/** The token of the operators; undefined when none is set. Rejects when it cannot be read. */
export type ReadToken = () => Promise<string | undefined>;

/** What a request does: a `private` read shows values of callers. */
export type Access = 'private' | 'write';

/** Milliseconds between two lines about rejected tokens. */
const LOG_INTERVAL = 60_000;

/** Decides who may change something, and see what callers have sent. */
export class Authorization {
  readonly #readToken: ReadToken;
  readonly #log: Log;
  #rejected = 0;
  #loggedAt = -Infinity;

  constructor(readToken: ReadToken, log: Log) {
    this.#readToken = readToken;
    this.#log = log;
  }

  /** Rejects with an HttpError: 403 when changes are off, 401 without the token. */
  async check(ctx: Context, access: Access): Promise<void> {
    const token = await this.#token();
    if (token === undefined) {
      if (access === 'write') throw changesAreOff();
      return;
    }
    const [, presented] = /^Bearer +(\S+)$/i.exec(ctx.get('Authorization')) ?? [];
    if (presented === undefined)
      throw unauthorized('this request needs the operator token: Authorization: Bearer <token>');
    if (isSame(presented, token)) return;
    this.#logRejection(ctx);
    throw unauthorized('the operator token is wrong', ', error="invalid_token"');
  }

  async #token(): Promise<string | undefined> {
    try {
      return await this.#readToken();
    } catch (error) {
      this.#log.error('cannot read the operator token; requests that need it are rejected', { error: asError(error) });
      const message = 'the service cannot read its operator token; its log has the reason';
      throw new HttpError({ status: 503, code: 'token_unreadable', message });
    }
  }

  /** One line a minute, however many tokens are tried. */
  #logRejection({ req }: Context): void {
    this.#rejected += 1;
    const now = performance.now();
    if (now - this.#loggedAt < LOG_INTERVAL) return;
    this.#log.warn('requests with a wrong operator token rejected', {
      requests: this.#rejected,
      peer: req.socket.remoteAddress,
    });
    this.#loggedAt = now;
    this.#rejected = 0;
  }
}

/** Takes the same time wherever the texts differ: digests have the same length, and say nothing about the texts. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function changesAreOff(): HttpError {
  const message =
    'changes are off: set OPERATOR_TOKEN or OPERATOR_TOKEN_FILE, start the service again, and send the token as Authorization: Bearer <token>';
  return new HttpError({ status: 403, code: 'changes_off', message });
}

function unauthorized(message: string, parameters = ''): HttpError {
  const headers = { 'WWW-Authenticate': `Bearer realm="weir"${parameters}` };
  return new HttpError({ status: 401, code: 'unauthorized', message, headers });
}
