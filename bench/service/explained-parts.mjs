// What explains decisions, for the decision path of benchmarks: offenders, 1 % of all decisions in the decision log, unmatched calls.

const SAMPLE = 0.01;

/**
 * @param load returns a module of the build, given its path in src
 * @returns the parts for `decisionPath`
 */
export function explainedParts(load) {
  const { Offenders } = load('limiter/offenders/offenders');
  const { UnmatchedCalls } = load('limiter/unmatched-calls');
  return {
    decisionLog: decisionLog(load),
    options: {
      offenders: new Offenders({ capacity: 1000, windowSeconds: 600, cacheKeyPrefix: '' }),
      unmatched: new UnmatchedCalls(() => undefined),
    },
  };
}

/** Accepts every line, as a file would. */
function decisionLog(load) {
  const { DecisionLines } = load('sinks/decision-log/decision-lines');
  const { BoundedLines } = load('sinks/logs/bounded-lines');
  const lines = new BoundedLines({ write: (_, done) => setImmediate(() => done()) });
  return new DecisionLines({ which: 'all', sample: SAMPLE, lines, now: Date.now, random: Math.random });
}
