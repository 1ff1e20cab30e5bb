import { types } from 'node:util';
import type { Context, Next } from 'koa';
import { type Choice, type Offer, mediaType, mediaTypes } from './accept';
import type { ActionMethod } from './controllers';
import type { RouteTarget } from './paths';
import type { RoutedContext } from './router';

/** An action, and how it was chosen. */
interface ChosenAction {
  readonly target: RouteTarget;
  readonly choice: Choice;
  readonly offer: Offer;
}

/**
 * Answers a request with an action: on a new instance of the controller, with the version in `ctx.state.apiVersion` and
 * the format in `ctx.state.apiFormat`. What the action returns becomes the body if it has set none. A JSON answer gets
 * the vendor's media type with the version, and so does one in the format that the request has named.
 */
export async function runAction(ctx: Context, next: Next, { target, choice, offer }: ChosenAction): Promise<void> {
  const { controller: Controller, action } = target;
  ctx.state.apiVersion = choice.version;
  ctx.state.apiFormat = ctx.params.format ?? choice.format ?? 'json';
  const instance = new Controller(ctx) as Readonly<Record<string, ActionMethod>>;
  const result = await instance[action]!(ctx, next);
  if (result !== undefined && (ctx.body === undefined || ctx.body === null)) ctx.body = result;
  if (ctx.headerSent) return;
  const format = ['json', choice.format].find((each) => each !== undefined && ctx.type === `application/${each}`);
  if (format !== undefined) ctx.set('Content-Type', mediaType(offer, choice.version, format));
}

/** What the blocks with the path of a request have instead of an action. */
interface Missed {
  /** The offers of blocks of which the client accepts no version. */
  readonly refusing: Offer[];
  readonly methods: Set<string>;
  isAccepted: boolean;
}

const missedBefore = new WeakMap<Context, Missed>();

/**
 * Passes a request on, and answers it unless something else has. Several blocks may have the path: the last one answers
 * for all.
 *
 * @param methods of the path in the version; undefined when the client accepts no version of the block
 */
export async function answerMissed(
  ctx: RoutedContext,
  next: Next,
  { offer, methods }: { readonly offer: Offer; readonly methods: readonly string[] | undefined },
): Promise<void> {
  const missed = missedBefore.get(ctx) ?? { refusing: [], methods: new Set<string>(), isAccepted: false };
  missedBefore.set(ctx, missed);
  if (methods === undefined) missed.refusing.push(offer);
  else missed.isAccepted = true;
  for (const method of methods ?? []) missed.methods.add(method);
  await next();
  if (ctx.headerSent || ctx.respond === false || (ctx.body !== undefined && ctx.body !== null)) return;
  if (!missed.isAccepted) {
    // 405: allowedMethods has seen a route that is not versioned.
    if (ctx.status !== 404 && ctx.status !== 405) return;
    ctx.remove('Allow');
    ctx.status = 406;
    ctx.body = notAcceptable(missed.refusing);
  } else if (ctx.status === 404 && missed.methods.size > 0) {
    ctx.status = ctx.method === 'OPTIONS' ? 200 : 405;
    if (ctx.method === 'OPTIONS') ctx.body = '';
    ctx.set('Allow', [...new Set(ctx.matched.flatMap((layer) => layer.methods))].join(', '));
  }
}

function notAcceptable(offers: readonly Offer[]): object {
  return {
    error: {
      code: 'version_not_acceptable',
      message: 'the Accept header names no version of this API',
      versions: [...new Set(offers.flatMap(({ versions }) => versions))],
      types: offers.flatMap(mediaTypes),
    },
  };
}

/**
 * Has an error answered with `Vary: Accept`: Koa removes the headers of the response when it answers with an error, and
 * takes those of the error. An error that cannot be changed stays as it is.
 */
export function keepVary(error: unknown): void {
  // Also an error of another realm.
  if (!types.isNativeError(error)) return;
  const headers = (Reflect.get(error, 'headers') ?? {}) as Readonly<Record<string, string | readonly string[]>>;
  const name = Object.keys(headers).find((each) => each.toLowerCase() === 'vary') ?? 'Vary';
  const fields = [headers[name] ?? []].flat().join(', ');
  if (/(?:^|,)\s*(?:\*|accept)\s*(?:,|$)/i.test(fields)) return;
  const value = { ...headers, [name]: fields === '' ? 'Accept' : `${fields}, Accept` };
  // Defined, not assigned: the class of the error may have a getter alone.
  Reflect.defineProperty(error, 'headers', { value, configurable: true, enumerable: true, writable: true });
}
