import { STEP, type Step } from '../load/interval';
import type { EventResult } from '../measure/events';
import { type Axis, linearAxis, logarithmicAxis } from './axes';
import { TITLES_OF_EVENTS } from './tables';
import { type Child, element, line, svgDocument, text } from './svg';

const WIDTH = 820;
const LEFT = 84;
const RIGHT = 16;
const PANEL = 170;
const PLOT = 90;
const TOP = 64;

/** The longest latency and the failed calls of each tenth of a second: a panel for each event. */
export function eventChart(events: readonly EventResult[]): string {
  return svgDocument(
    {
      width: WIDTH,
      height: TOP + PANEL * events.length,
      title: 'What callers notice in mid-run',
      subtitle:
        'longest latency of the calls due in each 100 ms, in ms, logarithmic; orange: calls failed; dashed: something happened',
    },
    ...events.flatMap((event, index) => panel(event, TOP + PANEL * index)),
  );
}

function panel({ event, timeline, moments, seconds }: EventResult, top: number): readonly Child[] {
  const worst = timeline.map((step) => step.worst).filter((value) => value > 0);
  const bottom = top + 22 + PLOT;
  const time = linearAxis(seconds, LEFT, WIDTH - RIGHT);
  const latency = logarithmicAxis(Math.max(0.1, Math.min(...worst)), Math.max(...worst), bottom, bottom - PLOT);
  return [
    text(16, top + 12, TITLES_OF_EVENTS[event]),
    ...latency.ticks.flatMap((tick) => [
      line([LEFT, latency.at(tick)], [WIDTH - RIGHT, latency.at(tick)]),
      text(LEFT - 6, latency.at(tick) + 4, `${tick} ms`, 'muted end'),
    ]),
    ...time.ticks
      .filter((tick) => tick <= seconds)
      .map((tick) => text(time.at(tick), bottom + 16, `${tick} s`, 'muted middle')),
    ...moments.map(({ at, what }) =>
      element(
        'line',
        {
          class: 'muted-line',
          'stroke-dasharray': '3 3',
          x1: time.at(at),
          y1: bottom - PLOT,
          x2: time.at(at),
          y2: bottom,
        },
        element('title', {}, what),
      ),
    ),
    ...timeline.flatMap((step, index) => bars(step, index, { time, latency, bottom })),
  ];
}

function bars(
  { worst, failed }: Step,
  index: number,
  { time, latency, bottom }: { readonly time: Axis; readonly latency: Axis; readonly bottom: number },
): readonly Child[] {
  const x = time.at((index * STEP) / 1_000);
  const width = Math.max(1, time.at(((index + 1) * STEP) / 1_000) - x - 1);
  return [
    ...(worst > 0
      ? [
          element('rect', {
            class: 'first',
            x,
            y: latency.at(worst),
            width,
            height: Math.max(1, bottom - latency.at(worst)),
          }),
        ]
      : []),
    ...(failed > 0 ? [element('rect', { class: 'second', x, y: bottom - PLOT, width, height: 6 })] : []),
  ];
}
