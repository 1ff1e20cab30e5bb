import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import type { Log } from '../../log/log';
import { ipAddress } from '../../text/host-port';
import { type ErrorResponse, HttpError } from '../errors';

/** Returns the token of the operators as it is now; undefined when none is set. */
export type CurrentToken = () => string | undefined;

/** What a request does: a `private` read shows values of callers, what the process has in memory, or its settings. */
export type Access = 'private' | 'write';

/** Between two lines about rejected tokens. */
const LOG_INTERVAL_MS = 60_000;

const CHANGES_ARE_OFF: ErrorResponse = {
  status: 403,
  code: 'changes_off',
  message:
    'changes are off: set OPERATOR_TOKEN or OPERATOR_TOKEN_FILE, start the service again, and send the token as Authorization: Bearer <token>',
};

/** Decides who may change something, and see what callers have sent. */
export class Authorization {
  readonly #currentToken: CurrentToken;
  readonly #log: Log;
  #rejected = 0;
  #loggedAt = -Infinity;

  constructor(currentToken: CurrentToken, log: Log) {
    this.#currentToken = currentToken;
    this.#log = log;
  }

  /**
   * @param inForm the token of a form, which cannot send a header
   * @throws {HttpError} 403 when changes are off, 401 without the token
   */
  check(ctx: Context, access: Access, inForm?: string): void {
    const token = this.#currentToken();
    if (token === undefined) {
      if (access === 'write') throw new HttpError(CHANGES_ARE_OFF);
      return;
    }
    const presented = tokenOf(ctx) ?? inForm;
    if (presented === undefined)
      throw unauthorized('this request needs the operator token: Authorization: Bearer <token>');
    if (isSame(presented, token)) return;
    this.#logRejection(ctx);
    throw unauthorized('the operator token is wrong', ', error="invalid_token"');
  }

  /**
   * Whether a request may see what callers have sent, where it is answered in either case.
   *
   * @throws {HttpError} 401 with a wrong token
   */
  seesCallers(ctx: Context): boolean {
    if (this.#currentToken() !== undefined && tokenOf(ctx) === undefined) return false;
    this.check(ctx, 'private');
    return true;
  }

  /** One line a minute, however many tokens are tried. */
  #logRejection({ req }: Context): void {
    this.#rejected += 1;
    const now = performance.now();
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    this.#log.warn('requests with a wrong operator token rejected', {
      requests: this.#rejected,
      peer: ipAddress(req.socket),
    });
    this.#loggedAt = now;
    this.#rejected = 0;
  }
}

/** A proxy may need Authorization for itself. */
function tokenOf(ctx: Context): string | undefined {
  return ctx.get('Weir-Operator-Token') || /^Bearer +(\S+)$/i.exec(ctx.get('Authorization'))?.[1];
}

/** Takes the same time wherever the texts differ: digests have the same length, and say nothing about the texts. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function unauthorized(message: string, parameters = ''): HttpError {
  const headers = { 'WWW-Authenticate': `Bearer realm="weir"${parameters}` };
  return new HttpError({ status: 401, code: 'unauthorized', message, headers });
}
