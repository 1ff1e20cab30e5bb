import { linearAxis } from '../suite/report/axes';
import { type Child, element, line, svgDocument, text } from '../suite/report/svg';
import { nameOf } from './setup';
import type { SoakReport, SoakSample } from './soak-report';

const MEBIBYTE = 2 ** 20;
const WIDTH = 820;
const HEIGHT = 340;
const LEFT = 72;
const RIGHT = 16;
const TOP = 84;
const BOTTOM = 290;

export function chartTitle({ setup }: SoakReport): string {
  return `Memory of the service during the soak: ${nameOf(setup)}`;
}

/** The memory of the service over the time of a soak, with the times at which the store was away or a worker was missing. */
export function soakChart(report: SoakReport): string {
  const { seconds, samples, outages } = report;
  const time = linearAxis(seconds, LEFT, WIDTH - RIGHT);
  const memory = linearAxis(Math.max(...samples.map(({ resident }) => resident)) / MEBIBYTE, BOTTOM, TOP);
  function path(read: (sample: SoakSample) => number, color: string): Child {
    const points = samples.map(
      (sample) => `${time.at(sample.at).toFixed(1)},${memory.at(read(sample) / MEBIBYTE).toFixed(1)}`,
    );
    return element('polyline', { class: `${color}-line`, 'stroke-width': 2, points: points.join(' ') });
  }
  return svgDocument(
    {
      width: WIDTH,
      height: HEIGHT,
      title: chartTitle(report),
      subtitle: 'MiB over the time in seconds; grey: the store was away, or a worker was missing',
    },
    element('rect', { class: 'first', x: LEFT, y: 56, width: 12, height: 12 }),
    text(LEFT + 18, 66, 'heap and buffers after a collection'),
    element('rect', { class: 'second', x: LEFT + 250, y: 56, width: 12, height: 12 }),
    text(LEFT + 268, 66, 'resident'),
    ...outages.map(([from, to]) =>
      element('rect', {
        class: 'grid',
        x: time.at(from),
        y: TOP,
        width: Math.max(1, time.at(to) - time.at(from)),
        height: BOTTOM - TOP,
      }),
    ),
    ...memory.ticks.flatMap((tick) => [
      line([LEFT, memory.at(tick)], [WIDTH - RIGHT, memory.at(tick)]),
      text(LEFT - 6, memory.at(tick) + 4, `${tick} MiB`, 'muted end'),
    ]),
    ...time.ticks.map((tick) => text(time.at(tick), BOTTOM + 18, `${tick} s`, 'muted middle')),
    path(({ heap }) => heap, 'first'),
    path(({ resident }) => resident, 'second'),
  );
}
