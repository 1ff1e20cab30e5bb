import { readFileSync } from 'node:fs';
import { svg, svgText, tenths } from '../suite/report/svg';
import { integer, markdownTable, significant } from '../suite/report/tables';
import type { Machine } from '../suite/processes/machine';
import type { FaultResult, Part, ToldFault } from './play-fault';

export interface FaultsReport {
  readonly date: string;
  readonly machine: Machine;
  /** Calls per second. */
  readonly rate: number;
  /** Seconds before the fault, in it, and after it. */
  readonly seconds: readonly [before: number, during: number, after: number];
  readonly results: readonly FaultResult[];
}

export function readFaults(file: string): FaultsReport {
  return JSON.parse(readFileSync(file, 'utf8')) as FaultsReport;
}

/** The parts are kept of those that the picture shows. */
export function isPictured({ store, policy, fault }: FaultResult): boolean {
  return store === 'single' && policy === 'local' && fault in TITLES;
}

function told({ told: instances }: FaultResult, which: keyof ToldFault): string {
  return instances.map((each) => significant(each[which] ?? undefined)).join('; ');
}

/** For README.md. */
export function faultsSection({ date, machine, rate, seconds, results }: FaultsReport): string {
  const { cpu, cores, node, redis, memcached } = machine;
  // Results of before have no such numbers.
  const isTold = results.every((result) => 'told' in result);
  const head = [
    'Store, fault, policy',
    'answered by policy',
    'failed or late: before the fault',
    'in its first second',
    'later',
    'p99 before, ms',
    'p99 later in the fault, ms',
    'counted again after, ms',
    'calls over the bound',
    'values counted twice',
    ...(isTold ? ['health not green after, ms; without calls', 'green again after, ms; without calls'] : []),
  ];
  const rows = results.map((result) => [
    `${result.store}, ${result.fault}, \`${result.policy}\``,
    integer(result.byPolicy),
    ...result.failed.map(integer),
    ...result.p99.map((each) => significant(each ?? undefined)),
    integer(result.recovered),
    result.policy === 'local' ? integer(result.overBound) : '–',
    integer(result.appliedTwice),
    ...(isTold ? [told(result, 'began'), told(result, 'ended')] : []),
  ]);
  return [
    `${cpu}, ${cores} cores, Node ${node}, Redis ${redis}, memcached ${memcached}; ${date}. ` +
      `${integer(rate)} calls per second with a deadline of 50 ms, ${seconds[0]} s before the fault, ${seconds[1]} s in it and ` +
      `${seconds[2]} s after it.`,
    markdownTable(head, rows),
  ].join('\n\n');
}

const [WIDTH, PANEL, LEFT, RIGHT] = [960, 230, 60, 20];
const [CALLS_HEIGHT, LATENCY_HEIGHT] = [90, 60];
/** Of the latency axis, in milliseconds. */
const LONGEST = 60;
const COLOURS = { counted: '#2e7d32', byPolicy: '#1565c0', failed: '#c62828' } as const;
const TITLES: Readonly<Record<string, string>> = {
  killed: 'The store is killed',
  stopped: 'The store hangs',
  slow: 'Replies are 200 ms late',
};

/**
 * The faults of a single server with the policy `local`: what calls are answered, and how long that takes, each 100 ms.
 */
export function picture({ rate, seconds, results }: FaultsReport): string {
  const panels = results.filter(isPictured).map((result, index) => {
    const duration = seconds[0] + seconds[1] + seconds[2];
    const x = scale(duration);
    const parts = result.parts.slice(0, duration * 10);
    const top = 40 + index * PANEL;
    return [
      svgText(LEFT, top + 12, TITLES[result.fault]!, 'bold'),
      `<rect x="${x(seconds[0])}" y="${top + 20}" width="${x(seconds[1]) - LEFT}" height="${CALLS_HEIGHT + LATENCY_HEIGHT + 10}" fill="#f3e5d8"/>`,
      bars(parts, { x, bottom: top + 20 + CALLS_HEIGHT, most: rate / 10 }),
      svgText(4, top + 32, 'calls'),
      ...latencies(parts, { x, bottom: top + 30 + CALLS_HEIGHT + LATENCY_HEIGHT }),
      ...Array.from({ length: duration + 1 }, (_, second) =>
        svgText(x(second) - 4, top + 44 + CALLS_HEIGHT + LATENCY_HEIGHT, String(second - seconds[0])),
      ),
    ].join('\n');
  });
  const height = 40 + panels.length * PANEL;
  const legend = Object.entries({
    counted: 'counted by the store',
    byPolicy: 'answered by policy',
    failed: 'failed or late',
  });
  const title = 'Answers and latencies while a store fails, with STORE_FAILURE_POLICY=local';
  return svg({ width: WIDTH, height, title }, [
    ...legend.map(([outcome, meaning], index) => {
      const left = LEFT + index * 180;
      const colour = COLOURS[outcome as keyof typeof COLOURS];
      return `<rect x="${left}" y="12" width="10" height="10" fill="${colour}"/>\n${svgText(left + 15, 21, meaning)}`;
    }),
    svgText(LEFT + 560, 21, 'line: p99 in ms; seconds from the fault'),
    ...panels,
  ]);
}

type Scale = (seconds: number) => number;

function scale(seconds: number): Scale {
  return (at) => LEFT + ((WIDTH - LEFT - RIGHT) * at) / seconds;
}

function bars(parts: readonly Part[], axis: { x: Scale; bottom: number; most: number }): string {
  const width = axis.x(0.1) - axis.x(0);
  const rectangles = parts.flatMap((part, index) => {
    let y = axis.bottom;
    return (['failed', 'byPolicy', 'counted'] as const).map((outcome) => {
      const height = Math.min(y - axis.bottom + CALLS_HEIGHT, (part[outcome] / axis.most) * (CALLS_HEIGHT - 10));
      if (height === 0) return '';
      y -= height;
      return `<rect x="${tenths(axis.x(index / 10))}" y="${tenths(y)}" width="${tenths(width)}" height="${tenths(height)}" fill="${COLOURS[outcome]}"/>`;
    });
  });
  return rectangles.filter((rectangle) => rectangle !== '').join('\n');
}

function latencies(parts: readonly Part[], { x, bottom }: { x: Scale; bottom: number }): readonly string[] {
  function y(milliseconds: number): number {
    return bottom - (Math.min(LONGEST, milliseconds) / LONGEST) * LATENCY_HEIGHT;
  }
  const points = parts.flatMap(({ p99 }, index) =>
    p99 !== null ? [`${tenths(x(index / 10 + 0.05))},${tenths(y(p99))}`] : [],
  );
  return [
    `<line x1="${LEFT}" y1="${y(50)}" x2="${WIDTH - RIGHT}" y2="${y(50)}" stroke="#999999" stroke-dasharray="4 3"/>`,
    svgText(4, y(50) + 4, 'deadline'),
    `<line x1="${LEFT}" y1="${bottom}" x2="${WIDTH - RIGHT}" y2="${bottom}" stroke="#666666"/>`,
    `<polyline points="${points.join(' ')}" fill="none" stroke="#444444"/>`,
  ];
}
