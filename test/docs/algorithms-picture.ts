import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { svg, svgText, tenths } from '../../bench/suite/report/svg';
import type { Algorithm } from '../../src/counting/algorithms/algorithm';
import { windowStart } from '../../src/counting/windows';
import { SlidingWindow } from '../../src/counting/algorithms/sliding';
import { TokenBucket } from '../../src/counting/algorithms/bucket';
import { ROOT } from './markdown-files';

/** Per minute. */
const LIMIT = 10;
const WINDOW = 60;
/** Seconds of the traffic. */
const DURATION = 300;
/** Two calls a second around the end of a window, one every three seconds, a pause, and twenty calls at once. */
const CALLS: readonly number[] = [
  ...Array.from({ length: 20 }, (_, call) => 55 + call / 2),
  ...Array.from({ length: 30 }, (_, call) => 100 + 3 * call),
  ...Array.from({ length: 20 }, (_, call) => 255 + call / 10),
];

/** Whether each call passes, of those of one caller in the order of their times. */
type Decide = (seconds: number) => boolean;

const PANELS: readonly (readonly [title: string, decide: () => Decide])[] = [
  ['fixed_window, the default', fixedWindow],
  ['sliding_window', () => byAlgorithm(new SlidingWindow(limitOf('sliding_window')))],
  [`token_bucket, burst ${LIMIT}`, () => byAlgorithm(new TokenBucket(limitOf('token_bucket')))],
  ['token_bucket, burst 3', () => byAlgorithm(new TokenBucket({ ...limitOf('token_bucket'), burst: 3 }))],
];

function limitOf(name: Algorithm['name']) {
  return { name, requestsPerUnit: LIMIT, lengthSeconds: WINDOW, burst: undefined };
}

function fixedWindow(): Decide {
  const counts = new Map<number, number>();
  return (seconds) => {
    const window = windowStart(Math.floor(seconds), WINDOW);
    const after = (counts.get(window) ?? 0) + 1;
    counts.set(window, after);
    return after <= LIMIT;
  };
}

function byAlgorithm(algorithm: Algorithm): Decide {
  let state = algorithm.empty(0);
  return (seconds) => {
    const outcome = algorithm.decide(algorithm.at(state, seconds * 1e6), 1);
    state = outcome.state;
    return outcome.isAllowed;
  };
}

const [WIDTH, PANEL, LEFT, RIGHT, TOP] = [960, 150, 60, 20, 40];
/** Of the curve and of the ticks. */
const [CURVE, TICKS] = [80, 16];
/** The most calls that the axis of the curve shows. */
const MOST = 25;
const COLOURS = { passed: '#2e7d32', denied: '#c62828', curve: '#1565c0' } as const;

/** What each algorithm lets pass of the same traffic, with a limit of ten a minute. */
export function algorithmsPicture(): string {
  const height = TOP + PANELS.length * PANEL;
  return svg(
    { width: WIDTH, height, title: 'What each algorithm lets pass of the same calls, with a limit of 10 a minute' },
    [...legend(), ...PANELS.flatMap(([title, decide], index) => panel(title, decide(), TOP + index * PANEL))],
  );
}

function legend(): readonly string[] {
  return [
    tick(LEFT, 8, COLOURS.passed),
    svgText(LEFT + 8, 21, 'a call that passes'),
    tick(LEFT + 130, 8, COLOURS.denied),
    svgText(LEFT + 138, 21, 'one that is denied'),
    `<line x1="${LEFT + 260}" y1="17" x2="${LEFT + 280}" y2="17" stroke="${COLOURS.curve}" stroke-width="2"/>`,
    svgText(LEFT + 286, 21, 'passed in the minute before; dashed: the limit, 10 a minute; below: seconds'),
  ];
}

function panel(title: string, decide: Decide, top: number): readonly string[] {
  const bottom = top + 20 + CURVE;
  const passed: number[] = [];
  const ticks = CALLS.map((seconds) => {
    const passes = decide(seconds);
    if (passes) passed.push(seconds);
    return tick(x(seconds), bottom + 6, passes ? COLOURS.passed : COLOURS.denied);
  });
  function y(calls: number): number {
    return bottom - (calls / MOST) * CURVE;
  }
  const points = Array.from({ length: DURATION + 1 }, (_, seconds) => {
    const recent = passed.filter((at) => seconds - WINDOW < at && at <= seconds).length;
    return `${tenths(x(seconds))},${tenths(y(recent))}`;
  });
  const windows = Array.from({ length: DURATION / WINDOW + 1 }, (_, index) => index * WINDOW);
  return [
    svgText(LEFT, top + 12, `${title}: ${passed.length} of ${CALLS.length} calls pass`, 'bold'),
    ...windows.map((at) => line([x(at), top + 20], [x(at), bottom], '#dddddd')),
    ...windows.map((at) => svgText(x(at) - 8, bottom + TICKS + 20, String(at))),
    line([LEFT, bottom], [WIDTH - RIGHT, bottom], '#666666'),
    line([LEFT, y(LIMIT)], [WIDTH - RIGHT, y(LIMIT)], '#999999', '4 3'),
    svgText(LEFT - 20, y(LIMIT) + 4, String(LIMIT)),
    svgText(LEFT - 20, y(2 * LIMIT) + 4, String(2 * LIMIT)),
    `<polyline points="${points.join(' ')}" fill="none" stroke="${COLOURS.curve}" stroke-width="2"/>`,
    ...ticks,
  ];
}

function x(seconds: number): number {
  return LEFT + ((WIDTH - LEFT - RIGHT) * seconds) / DURATION;
}

function tick(at: number, top: number, colour: string): string {
  return `<rect x="${tenths(at)}" y="${top}" width="1.5" height="${TICKS}" fill="${colour}"/>`;
}

type Point = readonly [x: number, y: number];

// oxlint-disable-next-line max-params -- as the attributes of the element
function line([x1, y1]: Point, [x2, y2]: Point, stroke: string, dashes = 'none'): string {
  const points = `x1="${tenths(x1)}" y1="${tenths(y1)}" x2="${tenths(x2)}" y2="${tenths(y2)}"`;
  return `<line ${points} stroke="${stroke}" stroke-dasharray="${dashes}"/>`;
}

if (require.main === module) writeFileSync(join(ROOT, 'docs/images/algorithms.svg'), algorithmsPicture());
