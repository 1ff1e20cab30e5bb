import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import type { Log } from '../../log/log';
import { ipAddress } from '../../text/host-port';
import { type ErrorResponse, HttpError } from '../errors';

/** Returns the token of OPERATOR_TOKEN as it is now; undefined when none is set. */
export type CurrentToken = () => string | undefined;

/** Returns roles and digests of the tokens of OPERATOR_TOKENS by their names, as they are now. */
export type CurrentTokens = () => Readonly<Record<string, string>> | undefined;

/**
 * What a request does: a `private` read shows values of callers or settings, a `report` what an instance reports to
 * others, a `profile` what the process has in memory.
 */
export type Access = 'private' | 'report' | 'profile' | 'write';

/** What the holder of a token may do. */
const PERMITTED: Readonly<Record<string, readonly Access[]>> = {
  view: ['private', 'report'],
  operate: ['private', 'report', 'profile', 'write'],
  peer: ['report'],
};

/** Between two lines about rejected tokens. */
const LOG_INTERVAL_MS = 60_000;

const CHANGES_ARE_OFF: ErrorResponse = {
  status: 403,
  code: 'changes_off',
  message:
    'changes are off: set OPERATOR_TOKENS_FILE or OPERATOR_TOKEN, start the service again, and send the token as Authorization: Bearer <token>',
};

interface KnownToken {
  readonly name: string;
  readonly role: string;
  /** As of {@link digestOf}. */
  readonly digest: string;
}

/** Decides who may change something, and see what callers have sent. */
export class Authorization {
  readonly #currentToken: CurrentToken;
  readonly #currentTokens: CurrentTokens;
  readonly #log: Log;
  #rejected = 0;
  #loggedAt = -Infinity;

  constructor(currentToken: CurrentToken, log: Log, currentTokens: CurrentTokens = () => undefined) {
    this.#currentToken = currentToken;
    this.#currentTokens = currentTokens;
    this.#log = log;
  }

  /**
   * @param inForm the token of a form, which cannot send a header
   * @returns the name of the token; undefined when none is needed
   * @throws {HttpError} 403 when changes are off, or the token does not permit this; 401 without a token
   */
  check(ctx: Context, access: Access, inForm?: string): string | undefined {
    const tokens = this.#tokens;
    if (tokens.length === 0) {
      if (access === 'write') throw new HttpError(CHANGES_ARE_OFF);
      return undefined;
    }
    const presented = tokenOf(ctx) ?? inForm;
    if (presented === undefined)
      throw unauthorized('this request needs an operator token: Authorization: Bearer <token>');
    const token = withDigest(tokens, presented);
    if (token === undefined) {
      this.#logRejection(ctx);
      throw unauthorized('the operator token is wrong', ', error="invalid_token"');
    }
    const { name, role } = token;
    if (PERMITTED[role]!.includes(access)) return name;
    const roles = Object.keys(PERMITTED).filter((each) => PERMITTED[each]!.includes(access));
    const message = `the token has the role ${role}, but this request needs one with the role ${roles.join(' or ')}`;
    throw new HttpError({ status: 403, code: 'forbidden', message });
  }

  get #tokens(): readonly KnownToken[] {
    const token = this.#currentToken();
    const own = token === undefined ? [] : [{ name: 'OPERATOR_TOKEN', role: 'operate', digest: digestOf(token) }];
    const others = Object.entries(this.#currentTokens() ?? {}).map(([name, text]) => {
      const [role, digest] = text.split(' ') as [string, string];
      return { name, role, digest };
    });
    return [...own, ...others];
  }

  /**
   * Whether a request may see what callers have sent, where it is answered in either case.
   *
   * @throws {HttpError} 401 with a wrong token
   */
  seesCallers(ctx: Context): boolean {
    if (this.#tokens.length > 0 && tokenOf(ctx) === undefined) return false;
    this.check(ctx, 'private');
    return true;
  }

  /** What the caller of a request may do: the role of its token; `view` where no token is set; undefined: nothing. */
  roleOf(ctx: Context): string | undefined {
    const tokens = this.#tokens;
    return tokens.length === 0 ? 'view' : withDigest(tokens, tokenOf(ctx) ?? '')?.role;
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

/** As a line of OPERATOR_TOKENS has it. Digests have the same length, and say nothing about the tokens. */
function digestOf(token: string): string {
  return `sha256:${createHash('sha256').update(token).digest('hex')}`;
}

/** A token that is presented, of those that are known; compared in constant time. */
function withDigest(tokens: readonly KnownToken[], presented: string): KnownToken | undefined {
  const digest = Buffer.from(digestOf(presented));
  return tokens.find((each) => timingSafeEqual(Buffer.from(each.digest), digest));
}

function unauthorized(message: string, parameters = ''): HttpError {
  const headers = { 'WWW-Authenticate': `Bearer realm="weir"${parameters}` };
  return new HttpError({ status: 401, code: 'unauthorized', message, headers });
}
