/**
 * The part of what is left of a limit that a lease takes at most: others share the rest, which gets smaller as it is
 * used.
 */
export const SHARE_OF_LEFT = 16;
/** Fewer hits are not worth a lease. */
export const LEAST_GRANT = 2;

/**
 * How long a lease of a token bucket may be used by the time of the store, in ms, whatever the trips of the process:
 * each process has to know it of all others, see `TokenBucket.windowAt`.
 */
export const BUCKET_LEASE_MS = 312.5;

/**
 * A process stops using a lease after this share of its lifetime in the store, so that the unused rest reaches the
 * store before it expires there.
 */
export const USABLE_SHARE = 0.8;

/** What an operation takes from its counter beyond its hits. */
export interface LeaseRequest {
  /** Most hits; 0: none. */
  readonly wants: number;
  /** For how long they may be used from the time of the store on, in milliseconds. */
  readonly milliseconds: number;
  /** When it was sent, in milliseconds of the clock of the leases. */
  readonly sentAt: number;
  /** What was taken; set by the store. */
  granted: number;
}

/**
 * The hits that a store grants.
 *
 * @param left of the limit, after the hits of the calls
 */
export function grantOf(wants: number, left: number): number {
  const granted = Math.min(wants, Math.floor(left / SHARE_OF_LEFT));
  return granted < LEAST_GRANT ? 0 : granted;
}
