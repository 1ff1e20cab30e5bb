/** What the frames of a channel are about. The value is the byte on the wire; both ends are of the same version of weir. */
export const TOPICS = {
  /** The life of a worker: JSON. */
  control: 0,
  /** Whether the components of a worker are healthy, and whether the instance is: JSON. */
  health: 1,
  /** The distribution of rules. */
  rules: 2,
  /** Operations on counters in memory, and the counts after them. */
  counters: 3,
  /** Statistics of a worker. */
  statistics: 4,
  /** Questions of `Requests`. */
  requests: 5,
  /** Answers of `Requests`. */
  answers: 6,
} as const;

export type Topic = (typeof TOPICS)[keyof typeof TOPICS];
