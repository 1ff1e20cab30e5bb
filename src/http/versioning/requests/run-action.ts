import type { Next } from 'koa';
import { mediaType } from '../accept/choose-version';
import type { ActionMethod } from '../controllers/controller-class';
import { removeOtherParams } from './own-params';
import type { RoutedContext } from './own-resolution';
import type { Resolution } from './resolve';
import { keepVary } from './vary';

/**
 * Answers a request with an action: on a new instance of the controller, with the version in `ctx.state.apiVersion`. What the
 * action returns becomes the body if it has set none. A JSON answer gets the vendor's media type with the version.
 */
export async function runAction(
  ctx: RoutedContext,
  next: Next,
  { routed, version, target }: Resolution & { kind: 'action' },
): Promise<void> {
  removeOtherParams(ctx, routed);
  ctx.state.apiVersion = version;
  try {
    const { controller: Controller, action } = target;
    const instance = new Controller(ctx) as Readonly<Record<string, ActionMethod>>;
    const result = await instance[action]!(ctx, next);
    if (result !== undefined && (ctx.body === undefined || ctx.body === null)) ctx.body = result;
  } catch (error) {
    keepVary(ctx, error);
    throw error;
  }
  if (!ctx.headerSent && ctx.type === 'application/json') {
    ctx.set('Content-Type', mediaType(routed.block.vendor, version));
  }
}
