import type { Results } from '../results';

/** Where and how the measurements were made, as a list. */
export function machineLines({ date, machine, seconds, decisions, settings }: Results): string {
  const { cpu, cores, memory, system, node, redis, memcached } = machine;
  const others = decisions.flatMap(({ saturation, paced }) => [saturation, ...paced.map(({ phase }) => phase)]);
  const sorted = others.map(({ otherCores }) => otherCores).toSorted((one, other) => one - other);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const set = Object.entries(settings).map(([name, value]) => `\`${name}=${value}\``);
  return [
    `- Machine: ${cpu}, ${cores} cores, ${memory} GiB of memory, ${system}`,
    `- Node ${node}${redis === undefined ? '' : `, Redis ${redis}`}${memcached === undefined ? '' : `, memcached ${memcached}`}`,
    `- ${date}; ${seconds} s for each measurement${set.length > 0 ? `; ${set.join(', ')}` : ''}`,
    `- Other programs on this machine used ${median.toFixed(1)} of ${cores} cores in the median measurement, up to ` +
      `${(sorted.at(-1) ?? 0).toFixed(1)}. ${isShared(median) ? 'It was shared: the service got the rest, so that rates are too low and latencies too high.' : 'The load generator and the stores share the cores with the service.'}`,
  ].join('\n');
}

function isShared(otherCores: number): boolean {
  return otherCores > 0.2;
}
