import type { Profiler } from 'node:inspector';
import type { Profile } from '../../../gen/perftools/profiles/profile';
import { ProfileBuilder } from './profile-builder';

type Node = Profiler.ProfileNode;

const NANOSECONDS = 1000;
const CPU = { type: 'cpu', unit: 'nanoseconds' };
const SAMPLES = { type: 'samples', unit: 'count' };

/** Nodes that are no function: the root of all stacks, and the time in which the event loop waits, which is no CPU time. */
const ROOT = '(root)';
const IDLE = '(idle)';

/** A CPU profile of V8 as pprof reads it. The time between two samples counts for the stack of the first one. */
export function cpuToPprof({ nodes, samples = [], timeDeltas = [], startTime, endTime }: Profiler.Profile): Profile {
  const duration = endTime - startTime;
  const builder = new ProfileBuilder({
    sampleTypes: [SAMPLES, CPU],
    periodType: CPU,
    period: samples.length === 0 ? 0 : Math.round((duration / samples.length) * NANOSECONDS),
    duration: duration / 1000,
  });
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap((parent) => (parent.children ?? []).map((id) => [id, parent])));
  for (const [id, { count, micros }] of timesOf(samples, timeDeltas, duration)) {
    const stack = stackOf(byId.get(id), parents);
    if (stack.length > 0 && stack[0]!.functionName !== IDLE) builder.add(stack, [count, micros * NANOSECONDS]);
  }
  return builder.finish();
}

/**
 * How often each node was seen, and for how many microseconds.
 *
 * @param deltas microseconds from the start or from the previous sample to each sample
 */
function timesOf(samples: readonly number[], deltas: readonly number[], duration: number) {
  const times = new Map<number, { count: number; micros: number }>();
  let at = 0;
  for (const [index, id] of samples.entries()) {
    at += deltas[index] ?? 0;
    const time = times.get(id) ?? { count: 0, micros: 0 };
    times.set(id, time);
    time.count += 1;
    // V8 sorts samples by time, except that those of two threads may be exchanged by microseconds.
    time.micros += Math.max(0, deltas[index + 1] ?? duration - at);
  }
  return times;
}

function stackOf(leaf: Node | undefined, parents: ReadonlyMap<number, Node>) {
  const stack = [];
  for (let node = leaf; node !== undefined && node.callFrame.functionName !== ROOT; node = parents.get(node.id)) {
    stack.push(node.callFrame);
  }
  return stack;
}
