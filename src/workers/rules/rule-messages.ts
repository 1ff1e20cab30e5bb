/** The first byte of each message of the distribution of rules. */
export const RULE_MESSAGES = {
  // From the primary. A worker answers each part of the rules with `next`, so that it receives one per turn of its event loop.
  /** The beginning or the middle of a long text, which the next message continues. */
  jsonBegin: 0,
  /** Rows as JSON. */
  rows: 1,
  /** Compiled wildcards as JSON, in which the lengths of arrays stand for the arrays. */
  wildcards: 2,
  /** Some of the elements of these arrays. */
  elements: 3,
  /** The rules are complete. A worker answers with `prepared`. */
  end: 4,
  /** Park requests. A worker answers with `held`. */
  hold: 5,
  /** Decide with the rules that were prepared last, also the parked requests. A worker answers with `committed`. */
  commit: 6,

  // From a worker.
  /** The worker has started and receives rules. */
  ready: 15,
  next: 16,
  prepared: 17,
  held: 18,
  committed: 19,
} as const;

/** A message without a body. */
export function ruleMessage(kind: (typeof RULE_MESSAGES)[keyof typeof RULE_MESSAGES]): Uint8Array {
  return Uint8Array.of(kind);
}
