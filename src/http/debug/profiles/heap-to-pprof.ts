import type { HeapProfiler, Runtime } from 'node:inspector';
import type { Profile } from '../../../gen/perftools/profiles/profile';
import { type Measure, ProfileBuilder } from './profile-builder';

type Node = HeapProfiler.SamplingHeapProfileNode;

/** What a profile shows, named as in Go. V8 reports no numbers of objects. */
export const IN_USE: Measure = { type: 'inuse_space', unit: 'bytes' };
export const ALLOCATED: Measure = { type: 'alloc_space', unit: 'bytes' };

export interface HeapSampling {
  /** Bytes between two samples on average. */
  readonly interval: number;
  readonly seconds: number;
}

/** A sampling heap profile of V8 as pprof reads it. V8 has already scaled the sizes up to those of all objects. */
export function heapToPprof(
  { head }: HeapProfiler.SamplingHeapProfile,
  measure: Measure,
  { interval, seconds }: HeapSampling,
): Profile {
  const builder = new ProfileBuilder({
    sampleTypes: [measure],
    periodType: { type: 'space', unit: 'bytes' },
    period: interval,
    duration: seconds * 1000,
  });
  function addBelow({ children }: Node, callers: readonly Runtime.CallFrame[]): void {
    for (const node of children) {
      const stack = [node.callFrame, ...callers];
      if (node.selfSize > 0) builder.add(stack, [Math.round(node.selfSize)]);
      addBelow(node, stack);
    }
  }
  addBelow(head, []);
  return builder.finish();
}
