/** What a soak is played against: a store, and so many processes of the service. */
export interface SoakSetup {
  readonly store: 'redis' | 'memory';
  readonly workers: number;
}

/** For readers. */
export function nameOf({ store, workers }: SoakSetup): string {
  const name = store === 'redis' ? 'Redis' : 'memory';
  return workers === 1 ? name : `${name}, ${workers} workers`;
}

/** For the names of files. */
export function slugOf({ store, workers }: SoakSetup): string {
  return workers === 1 ? store : `${store}-${workers}-workers`;
}
