import type { RoutedPath } from './routed-path';
import type { RouterLayer } from './router';
import { isParameter } from './versioned-path';

type Params = Record<string, string | undefined>;

/** A layer's own reading of the parameters of a path, in addition to those that other layers have read. */
interface ReadingLayer extends RouterLayer {
  params: (this: ReadingLayer, ...values: unknown[]) => Params;
}

/**
 * Lets a layer read parameters with their dots. Before the action would be too late: the handlers of `router.param()` run earlier,
 * and they must not check another value than the action gets.
 */
export function readWholeParams(layer: RouterLayer, routed: RoutedPath): void {
  const reading = layer as ReadingLayer;
  const { params } = reading;
  // Its own property: when a router is nested in another, the copy of the layer gets it too.
  reading.params = function wholeParams(...values) {
    const read = params.apply(this, values);
    restoreDots(read, routed);
    return read;
  };
}

/** Puts an unknown format back to the value that it was cut from: `/foo/a.b` gives the id `a.b`. */
function restoreDots(params: Params, { block, path }: RoutedPath): void {
  const { format } = params;
  const last = path.segments.at(-1)!;
  if (format === undefined || block.formats.has(format) || !isParameter(last)) return;
  const name = last.slice(1);
  params[name] = `${params[name]}.${format}`;
  delete params.format;
}
