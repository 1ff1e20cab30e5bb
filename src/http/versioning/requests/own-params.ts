import { type RoutedPath, routedPath } from '../routes/routed-path';
import type { RouterLayer } from '../routes/router';
import type { RoutedContext } from './own-resolution';

/** Removes parameters of paths that match too but were not selected; the router keeps them. */
export function removeOtherParams(ctx: RoutedContext, selected: RoutedPath): void {
  const { matched = [] } = ctx;
  if (matched.length === 1) return;
  const layers = matched.filter((layer) => routedPath(layer) !== undefined);
  const own = namesOf(layers.find((layer) => routedPath(layer)?.path === selected.path));
  for (const name of layers.flatMap(namesOf)) {
    if (!own.includes(name)) delete ctx.params[name];
  }
}

function namesOf(layer: RouterLayer | undefined): readonly string[] {
  return layer?.paramNames.map(({ name }) => name) ?? [];
}
