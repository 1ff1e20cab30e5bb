/** The connections that a worker has, those on their way to it included. */
export interface Load {
  readonly grpc: number;
  readonly http: number;
}

export interface LoadedWorker {
  readonly load: Load;
  /** Whether it answers; see `responsiveness`. */
  readonly isResponsive: boolean;
}

/**
 * The worker to give a connection to: of those that answer, or of all when none does, the one with the fewest connections of that
 * listener, of several the one with the fewest in all, of several the first. Undefined when there are no workers.
 */
export function leastLoaded<W extends LoadedWorker>(workers: Iterable<W>, listener: keyof Load): W | undefined {
  let best: W | undefined;
  for (const worker of workers) if (best === undefined || isBetter(worker, best, listener)) best = worker;
  return best;
}

function isBetter(one: LoadedWorker, other: LoadedWorker, listener: keyof Load): boolean {
  if (one.isResponsive !== other.isResponsive) return one.isResponsive;
  return isLess(one.load, other.load, listener);
}

function isLess(one: Load, other: Load, listener: keyof Load): boolean {
  if (one[listener] !== other[listener]) return one[listener] < other[listener];
  return one.grpc + one.http < other.grpc + other.http;
}
