import { useEffect, useRef, useState } from 'preact/hooks';
import type { History } from '../src/operators/live-answers';
import { spanOf, useRange } from './fleet-answer';
import { happeningsOf, outagesOf } from './happenings';
import type { Series } from './history';
import { Bands, Ends, Events, type Frame, Key, type LineTone, Lines, tickText, ticksOf, timesOf } from './plot';
import { clock, duration, measure, shortClock } from './text';

export interface ChartLine {
  readonly name: string;
  readonly values: Series;
  readonly tone: LineTone;
  readonly isArea?: boolean;
}

/** The lines of hits or calls, and of those that were limited, or that shadow mode may have allowed: `over limit`. */
export function outcomeLines(names: readonly [string, string], all: Series, over: Series): readonly ChartLine[] {
  return [
    { name: names[0], values: all, tone: 'pass', isArea: true },
    { name: names[1], values: over, tone: 'over' },
  ];
}

interface ChartProps {
  /** What it shows, with the unit: `Hits per second, by outcome`. */
  readonly label: string;
  readonly history: Pick<History, 'times' | 'interval' | 'marks'>;
  readonly lines: readonly ChartLine[];
  /** Pixels. */
  readonly height?: number;
  readonly format?: (value: number | null | undefined) => string;
}

/** Pixels around the lines, and of the names at their ends. */
const [TOP, TOP_OF_BANDS, BOTTOM, LEFT, RIGHT, ENDS] = [12, 28, 24, 46, 12, 128];
/** Pixels: narrower ones have the names of the lines below them. */
const NARROW = 560;
/** Pixels between two times of the axis. */
const TIME = 76;
/** Samples by which a key moves. */
const STEPS: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

/** Numbers over a time, with outages as bands. The pointer or the arrow keys choose a time, whose numbers are shown. */
export function Chart({ label, history, lines: all, height = 214, format = measure }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const { from, until, first } = spanOf(history, useRange());
  const times = history.times.slice(first);
  const lines = all.map((line) => ({ ...line, values: line.values.slice(first) }));
  const outages = outagesOf(history.marks).filter((each) => (each.until ?? until) > from && each.from < until);
  const events = happeningsOf(history.marks).filter((each) => each.at >= from && each.at <= until);
  const ends = lines.map((line) => ({ ...line, value: line.values.at(-1) }));
  const [chosen, setChosen] = useState<number>();
  const at = chosen === undefined ? -1 : times.indexOf(chosen);
  const last = times.length - 1;
  const place = at === -1 ? last : at;
  const ticks = ticksOf(Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0))));
  const most = ticks.at(-1)!;
  const isNarrow = width < NARROW;
  const [top, bottom] = [outages.length > 0 ? TOP_OF_BANDS : TOP, height - BOTTOM];
  const right = width - (isNarrow ? RIGHT : ENDS);
  function x(time: number): number {
    return LEFT + ((Math.min(until, Math.max(from, time)) - from) / (until - from)) * (right - LEFT);
  }
  function y(value: number): number {
    return top + (1 - Math.min(value, most) / most) * (bottom - top);
  }
  const frame: Frame = { x, y, until, width, right, top, bottom };
  function onPointerMove(event: PointerEvent): void {
    const left = event.clientX - box.current!.getBoundingClientRect().left;
    setChosen(times.find((time) => x(time) >= left) ?? times.at(-1));
  }
  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === 'Escape') setChosen(undefined);
    const step = STEPS[event.key];
    if (step === undefined) return;
    event.preventDefault();
    setChosen(times[Math.max(0, Math.min(last, place + step))]);
  }
  function legendOf(index: number) {
    return lines.map(({ name, tone, values }) => (
      <div key={name}>
        <Key tone={tone} name={name} /> <b>{format(values[index])}</b>
      </div>
    ));
  }
  const words = lines.map(({ name, values }) => `${name} ${format(values[place])}`).join(', ');
  return (
    <div
      ref={box}
      class="plot"
      tabIndex={0}
      role="slider"
      aria-label={`${label}: ${summaryOf(lines, format)}`}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, last)}
      aria-valuenow={Math.max(0, place)}
      aria-valuetext={`${last < 0 ? 'no sample yet' : clock(times[place]!)}: ${words}`}
      onPointerMove={onPointerMove}
      onPointerLeave={() => setChosen(undefined)}
      onBlur={() => setChosen(undefined)}
      onKeyDown={onKeyDown}
    >
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        {ticks.map((tick) => (
          <g key={tick}>
            <line class="grid-line" x1={LEFT} x2={right} y1={y(tick)} y2={y(tick)} />
            <text x={LEFT - 8} y={y(tick) + 4} text-anchor="end">
              {tickText(tick)}
            </text>
          </g>
        ))}
        {timesOf(from, until, (right - LEFT) / TIME).map((time) => (
          <text key={time} x={x(time)} y={height - 8} text-anchor={x(time) > width - 26 ? 'end' : 'middle'}>
            {(time % 60 === 0 ? shortClock : clock)(time)}
          </text>
        ))}
        <Bands outages={outages} frame={frame} />
        {lines.map(({ name, values, tone, isArea = false }) => (
          <g key={name} class={`line ${tone}`}>
            <Lines {...history} times={times} values={values} frame={frame} tone={tone} isArea={isArea} />
          </g>
        ))}
        <Events events={events} frame={frame} />
        {!isNarrow && <Ends ends={ends} format={format} frame={frame} />}
        {at !== -1 && <line class="crosshair" x1={x(chosen!)} x2={x(chosen!)} y1={top} y2={bottom} />}
      </svg>
      {at !== -1 && (
        // On the other half, so that it does not cover what it is about.
        <div class={`tip ${x(chosen!) > width / 2 ? 'before' : 'after'}`}>
          <b>{clock(chosen!)}</b>
          {legendOf(at)}
        </div>
      )}
      {isNarrow && <div class="keys">{legendOf(last)}</div>}
      {last < 0 && <p class="empty">The first numbers are there {duration(history.interval)} after the start.</p>}
    </div>
  );
}

/** The present width of an element, in pixels. */
function useWidth(box: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(800);
  useEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => setWidth(Math.max(240, element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** For those who do not see the lines. */
function summaryOf(lines: readonly ChartLine[], format: (value: number) => string): string {
  const texts = lines.map(({ name, values }) => {
    const known = values.filter((value) => value !== null);
    if (known.length === 0) return `${name}: no values`;
    return `${name}: ${format(known.at(-1)!)} now, from ${format(Math.min(...known))} to ${format(Math.max(...known))}`;
  });
  return texts.join('; ');
}
