import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import type { History, HistoryMark } from '../src/operators/live-answers';
import { Short, clock, measure } from './text';

type Series = History['latency']['p50'];

export interface ChartLine {
  readonly name: string;
  readonly values: Series;
}

interface ChartProps {
  readonly title: string;
  /** What the numbers are: `per second`, `ms`. */
  readonly unit: string;
  readonly history: History;
  /** At most as many as there are dashes. */
  readonly lines: readonly ChartLine[];
}

/** Pixels of a line and the gap after it: lines are told apart without colours, too. */
const DASHES: readonly (readonly number[])[] = [[], [8, 4], [2, 3], [12, 3, 2, 3], [5, 2], [2, 7]];
export const MOST_LINES = DASHES.length;

/** What is written at the line of a mark. */
export const MARKS: Readonly<Record<HistoryMark['kind'], string>> = {
  start: 'S',
  stop: 'E',
  reload: 'R',
  rejection: 'X',
  worker: 'W',
  store: 'F',
};

/** Seconds that a chart shows at least. */
const LEAST = 600;

/**
 * Numbers over the last hour. The arrow keys move the time for which the legend shows them.
 *
 * uPlot draws them: it has axes, gaps and a cursor that all charts share in 23 KB, and needs no HTML from texts, which
 * the policy of the page forbids.
 */
export function Chart({ title, unit, history, lines }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [at, setAt] = useState<number>();
  const data = useMemo(() => aligned(history, lines), [history, lines]);
  const shown = useRef({ history, data });
  shown.current = { history, data };
  const names = lines.map(({ name }) => name).join('\n');
  useEffect(() => {
    const element = box.current!;
    const created = new uPlot(optionsOf(element, lines, shown), shown.current.data, element);
    created.hooks.setCursor = [({ cursor }: uPlot) => setAt(cursor.idx ?? undefined)];
    plot.current = created;
    const observer = new ResizeObserver(() => created.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    function redraw(): void {
      created.redraw(false, true);
    }
    scheme.addEventListener('change', redraw);
    return () => {
      observer.disconnect();
      scheme.removeEventListener('change', redraw);
      created.destroy();
    };
  }, [names]);
  useEffect(() => plot.current?.setData(data), [data]);
  useEffect(() => {
    for (const [index, { name }] of lines.entries()) plot.current?.setSeries(index + 1, { show: !hidden.has(name) });
  }, [hidden, names]);
  const times = data[0];
  const place = Math.min(at ?? times.length - 1, times.length - 1);
  function onKeyDown(event: KeyboardEvent): void {
    const steps: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || times.length === 0) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(times.length - 1, (plot.current!.cursor.idx ?? place) + step));
    const left = plot.current!.valToPos(times[next]!, 'x');
    plot.current!.setCursor({ left, top: 0 });
  }
  const values = lines.map(({ name }, index) => `${name} ${measure(data[index + 1]![place])}`);
  const moment = times.length === 0 ? 'no sample yet' : clock(times[place]!);
  return (
    <figure class="chart">
      <h2>
        <Short text={title} /> <span class="hint">{unit}</span>
      </h2>
      <div
        ref={box}
        class="plot"
        tabIndex={0}
        role="slider"
        aria-label={`${title}, ${unit}: ${summaryOf(lines)}`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, times.length - 1)}
        aria-valuenow={Math.max(0, place)}
        aria-valuetext={`${moment}: ${values.join(', ')}`}
        onKeyDown={onKeyDown}
      />
      <figcaption class="legend">
        <span class="hint">{at === undefined ? 'last' : moment}</span>
        {lines.map(({ name }, index) => (
          <button
            key={name}
            type="button"
            class={`line line-${index}`}
            title={name}
            aria-pressed={!hidden.has(name)}
            onClick={() => setHidden(toggled(hidden, name))}
          >
            <svg width="30" height="8" aria-hidden="true">
              <line x1="0" x2="30" y1="4" y2="4" stroke-dasharray={DASHES[index]!.join(' ')} />
            </svg>
            <span class="name">{name}</span> <b>{measure(data[index + 1]![place])}</b>
          </button>
        ))}
      </figcaption>
    </figure>
  );
}

/** Pixels, with the axis. */
const HEIGHT = 160;

interface Shown {
  readonly history: History;
  readonly data: uPlot.AlignedData;
}

function optionsOf(
  element: HTMLElement,
  lines: readonly ChartLine[],
  shown: { readonly current: Shown },
): uPlot.Options {
  // As the style sheet has it for the present scheme.
  function quiet(): string {
    return getComputedStyle(element).color;
  }
  const grid = { stroke: () => getComputedStyle(element).borderTopColor, width: 1 };
  function stroke(index: number): () => string {
    return () => getComputedStyle(element.parentElement!.querySelector(`.line-${index}`)!).color;
  }
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { sync: { key: 'time' }, drag: { x: false, y: false }, y: false },
    scales: {
      x: { range: () => spanOf(shown.current.data[0]) },
      y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.1 : 1] },
    },
    axes: [
      { stroke: quiet, grid, ticks: grid, size: 32, values: (_plot, times) => times.map(clock) },
      {
        stroke: quiet,
        grid,
        ticks: grid,
        size: 52,
        values: (_plot, numbers) => numbers.map((each) => SHORT.format(each)),
      },
    ],
    series: [
      {},
      ...lines.map(({ name }, index) => ({
        label: name,
        stroke: stroke(index),
        width: 1.75,
        dash: [...DASHES[index]!],
        points: { show: false },
      })),
    ],
    hooks: { draw: [(plot) => drawMarks(plot, shown.current.history.marks, quiet())] },
  };
}

const SHORT = new Intl.NumberFormat(undefined, { notation: 'compact', maximumSignificantDigits: 3 });

function drawMarks(plot: uPlot, marks: readonly HistoryMark[], colour: string): void {
  const { ctx, bbox, scales } = plot;
  const { min = 0, max = 0 } = scales['x']!;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.font = `bold ${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textBaseline = 'top';
  ctx.textAlign = 'left';
  let end = -Infinity;
  for (const { at, kind } of marks) {
    if (at < min || at > max) continue;
    const x = Math.round(plot.valToPos(at, 'x', true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    // Next to those of marks before it, where they would cover each other.
    const start = x < end ? end : x + 3 * devicePixelRatio;
    ctx.fillText(MARKS[kind], start, bbox.top);
    end = start + ctx.measureText(MARKS[kind]).width + devicePixelRatio;
  }
  ctx.restore();
}

/** From the first sample, but at least ten minutes. */
function spanOf(times: uPlot.AlignedData[0]): [number, number] {
  const last = times.at(-1) ?? Date.now() / 1000;
  return [Math.min(times[0] ?? last, last - LEAST), last];
}

/** The times and lines for the plot, with a gap where there were no samples. */
function aligned({ times, interval }: History, lines: readonly ChartLine[]): uPlot.AlignedData {
  const places: (number | undefined)[] = [];
  const all: number[] = [];
  for (const [place, time] of times.entries()) {
    const before = times[place - 1];
    if (before !== undefined && time - before > 2.5 * interval) {
      places.push(undefined);
      all.push(before + interval);
    }
    places.push(place);
    all.push(time);
  }
  return [all, ...lines.map(({ values }) => places.map((place) => (place === undefined ? null : values[place])))];
}

/** For those who do not see the lines. */
function summaryOf(lines: readonly ChartLine[]): string {
  const texts = lines.map(({ name, values }) => {
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return `${name}: no values`;
    const [least, most] = [Math.min(...known), Math.max(...known)];
    return `${name}: ${measure(known.at(-1))} now, from ${measure(least)} to ${measure(most)}`;
  });
  return texts.join('; ');
}

function toggled(set: ReadonlySet<string>, name: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(name)) next.add(name);
  return next;
}
