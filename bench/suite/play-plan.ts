import { measureDecisions } from './measure/decisions';
import { measureMemory } from './measure/memory';
import { GENERATOR_IS_BUSY, type Phase } from './measure/phase';
import { type Options, namesOf } from './options';
import { describeMachine } from './processes/machine';
import type { Results } from './results';
import { integer, significant } from './report/tables';
import { titleOf } from './scenarios/scenarios';

/** Runs the measurements one after the other, and reports each as it ends. */
export async function playPlan(options: Options, say: (line: string) => void): Promise<Results> {
  const { plan, durations, shares, settings, memoryKeys } = options;
  const count = namesOf(plan).length;
  const begun = performance.now();
  let done = 0;
  async function step<T>(title: string, measure: () => Promise<T>): Promise<T> {
    done += 1;
    say(`[${done}/${count}, ${Math.round((performance.now() - begun) / 1_000)} s] ${title}`);
    return measure();
  }
  const decisions: Results['decisions'][number][] = [];
  const memory: Results['memory'][number][] = [];
  for (const scenario of plan.scenarios) {
    const result = await step(titleOf(scenario), () =>
      measureDecisions(scenario, {
        durations,
        shares,
        settings,
        onPhase: (title, phase) => say(`  ${title.padEnd(10)} ${show(phase)}`),
      }),
    );
    decisions.push(result);
  }
  for (const store of plan.memory) {
    const result = await step(`memory of ${integer(memoryKeys)} keys, ${store}`, () =>
      measureMemory(store, { keys: memoryKeys, settings }),
    );
    say(`  ${significant(result.service.heap)} bytes of heap per key, ${significant(result.data)} in the store`);
    memory.push(result);
  }
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: describeMachine(),
    seconds: durations.measure / 1_000,
    settings,
    decisions,
    memory,
  };
}

function show({ perSecond, cpu, latency, calls, generatorBusy }: Phase): string {
  const notes = [
    ...(calls.failed > 0 ? [`${calls.failed} FAILED`] : []),
    ...(calls.unexpected > 0 ? [`${calls.unexpected} WITH ANOTHER ANSWER`] : []),
    ...(generatorBusy > GENERATOR_IS_BUSY ? ['the generator is the bottleneck'] : []),
  ];
  return [
    `${integer(perSecond)}/s`,
    `CPU ${significant(cpu.service)} + ${significant(cpu.store)} µs`,
    `p50 ${significant(latency.p50)}, p99 ${significant(latency.p99)}, p99.9 ${significant(latency.p999)} ms`,
    ...notes,
  ].join('; ');
}
