import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { svg, svgText, tenths } from '../../bench/suite/report/svg';
import { leasedLimit } from '../counting/lease-bounds';
import { SimulatedInstance, SimulatedStore, Timeline } from '../support/data/lease-fleet';
import { ROOT } from './markdown-files';

/** In a window of ten seconds, of which the picture shows the first ones. */
const LIMIT = 600;
const [WINDOW, SHOWN] = [10, 2_500];
const START = 1_700_000_000_000;
/** Milliseconds to the store and back. */
const TRIP = 2;
/** Milliseconds between two points of a curve. */
const STEP = 10;
const INSTANCES = [
  { name: 'instance 1, 200 calls a second', rate: 200, used: '#1565c0', held: '#90caf9' },
  { name: 'instance 2, 100 calls a second', rate: 100, used: '#2e7d32', held: '#a5d6a7' },
  { name: 'instance 3, 50 calls a second', rate: 50, used: '#6a1b9a', held: '#ce93d8' },
] as const;

/**
 * An instance over time: by step, what it has used and holds; the times of its trips and of the calls that it denied,
 * in milliseconds.
 */
class Course {
  readonly used: number[] = [];
  readonly held: number[] = [];
  readonly trips: number[] = [];
  readonly denied: number[] = [];
  passed = 0;
}

/** Three instances of which each calls one key evenly, by the code that decides in the service. */
function play(): readonly Course[] {
  const timeline = new Timeline(START);
  const store = new SimulatedStore();
  const [limit, key] = [leasedLimit(LIMIT, WINDOW), `d_k_v_${START / 1000}`];
  const courses = INSTANCES.map(({ rate }, index) => {
    const course = new Course();
    const instance = new SimulatedInstance({
      ...{ timeline, store },
      trip: () => {
        course.trips.push(timeline.now - START);
        return TRIP;
      },
    });
    // Two at a time, so that its windows show that it is called often.
    for (let at = 5 * (index + 1); at < SHOWN; at += 2_000 / rate) {
      for (let call = 0; call < 2; call += 1) {
        timeline.at(START + at, () =>
          instance.call(limit, key, 1, ({ countAfter: after, isKnownOver }) => {
            if (isKnownOver || after > LIMIT) course.denied.push(timeline.now - START);
            else course.passed += 1;
          }),
        );
      }
    }
    for (let at = 0; at <= SHOWN; at += STEP) {
      timeline.at(START + at, () => {
        course.used.push(course.passed);
        course.held.push(instance.leases.heldOf(key));
      });
    }
    return course;
  });
  timeline.runTo(START + SHOWN);
  return courses;
}

const [WIDTH, LEFT, RIGHT, TOP] = [960, 60, 20, 40];
/** Of the picture of the counter, of that of an instance, and of its ticks. */
const [COUNTER, INSTANCE, TICKS] = [220, 90, 10];
/** The most hits that the axis of an instance shows. */
const MOST_HELD = 40;
const DENIED = '#c62828';

/** One counter, and the hits that three instances use of it and hold. */
export function leasesPicture(): string {
  const courses = play();
  const height = TOP + 30 + COUNTER + INSTANCES.length * INSTANCE + 20;
  const title = `A limit of ${LIMIT} in ${WINDOW} seconds, of which three instances lease hits`;
  return svg({ width: WIDTH, height, title }, [
    ...legend(),
    ...counter(courses),
    ...courses.flatMap((course, index) => held(course, index, TOP + 30 + COUNTER + index * INSTANCE)),
    ...Array.from({ length: SHOWN / 500 + 1 }, (_, index) =>
      svgText(x(index * 500) - 8, height - 6, `${(index / 2).toFixed(1)} s`),
    ),
  ]);
}

function legend(): readonly string[] {
  return [
    square(LEFT, '#1565c0'),
    svgText(LEFT + 15, 21, 'used by calls that passed'),
    square(LEFT + 170, '#90caf9'),
    svgText(LEFT + 185, 21, 'held for later calls'),
    tick(LEFT + 310, 12, '#333333'),
    svgText(LEFT + 317, 21, 'a trip to the store'),
    tick(LEFT + 430, 12, DENIED),
    svgText(LEFT + 437, 21, 'a call that is denied; dashed: the limit'),
  ];
}

/** The counter in the store: what was used, and on top of it what is held. */
function counter(courses: readonly Course[]): readonly string[] {
  const bottom = TOP + 20 + COUNTER;
  function y(hits: number): number {
    return bottom - (hits / (LIMIT * 1.1)) * COUNTER;
  }
  const passed = courses.reduce((sum, course) => sum + course.passed, 0);
  const calls = courses.reduce((sum, course) => sum + course.denied.length, passed);
  const trips = courses.reduce((sum, course) => sum + course.trips.length, 0);
  let below = courses[0]!.used.map(() => 0);
  const areas = (['used', 'held'] as const).flatMap((kind) =>
    courses.map((course, index) => {
      const above = below.map((hits, step) => hits + course[kind][step]!);
      const drawn = area(below.map(y), above.map(y), INSTANCES[index]![kind]);
      below = above;
      return drawn;
    }),
  );
  return [
    svgText(
      LEFT,
      TOP + 12,
      `the counter in the store: ${calls} calls, of which ${passed} pass, in ${trips} trips`,
      'bold',
    ),
    ...areas,
    line(y(LIMIT), '#999999', '4 3'),
    svgText(LEFT - 26, y(LIMIT) + 4, String(LIMIT)),
    line(bottom, '#666666'),
  ];
}

/** What an instance holds, and its trips. */
function held({ held: hits, trips, denied, passed }: Course, index: number, top: number): readonly string[] {
  const { name, held: colour } = INSTANCES[index]!;
  const bottom = top + INSTANCE - 25;
  const floor = hits.map(() => bottom);
  return [
    svgText(LEFT, top + 8, `${name}: ${passed} pass, in ${trips.length} trips`, 'bold'),
    area(
      floor,
      hits.map((each) => bottom - (each / MOST_HELD) * (INSTANCE - 35)),
      colour,
    ),
    line(bottom, '#666666'),
    svgText(LEFT - 20, bottom - (20 / MOST_HELD) * (INSTANCE - 35) + 4, '20'),
    ...trips.map((at) => tick(x(at), bottom + 2, '#333333')),
    ...denied.map((at) => tick(x(at), bottom + 2 + TICKS, DENIED)),
  ];
}

function x(milliseconds: number): number {
  return LEFT + ((WIDTH - LEFT - RIGHT) * milliseconds) / SHOWN;
}

function square(at: number, colour: string): string {
  return `<rect x="${at}" y="12" width="10" height="10" fill="${colour}"/>`;
}

function tick(at: number, top: number, colour: string): string {
  return `<rect x="${tenths(at)}" y="${tenths(top)}" width="1" height="${TICKS}" fill="${colour}"/>`;
}

function line(y: number, stroke: string, dashes = 'none'): string {
  return `<line x1="${LEFT}" y1="${tenths(y)}" x2="${WIDTH - RIGHT}" y2="${tenths(y)}" stroke="${stroke}" stroke-dasharray="${dashes}"/>`;
}

/** Between two curves with a point for each step. */
function area(below: readonly number[], above: readonly number[], colour: string): string {
  function point(y: number, step: number): string {
    return `${tenths(x(step * STEP))},${tenths(y)}`;
  }
  const points = [...above.map(point), ...below.map(point).toReversed()];
  return `<polygon points="${points.join(' ')}" fill="${colour}"/>`;
}

if (require.main === module) writeFileSync(join(ROOT, 'docs/images/leases.svg'), leasesPicture());
