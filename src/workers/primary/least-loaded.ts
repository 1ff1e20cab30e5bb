/** The connections that a worker has, those on their way to it included. */
export interface Load {
  readonly grpc: number;
  readonly http: number;
}

/**
 * The worker to give a connection to: the one with the fewest connections of that listener, of several the one with the fewest in all,
 * of several the first. Undefined when there are no workers.
 */
export function leastLoaded<W extends { readonly load: Load }>(
  workers: Iterable<W>,
  listener: keyof Load,
): W | undefined {
  let best: W | undefined;
  for (const worker of workers) if (best === undefined || isLess(worker.load, best.load, listener)) best = worker;
  return best;
}

function isLess(one: Load, other: Load, listener: keyof Load): boolean {
  if (one[listener] !== other[listener]) return one[listener] < other[listener];
  return one.grpc + one.http < other.grpc + other.http;
}
