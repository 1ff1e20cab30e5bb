import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { History } from '../src/operators/live-answers';
import { spanOf, useRange } from './fleet-answer';
import { happeningsOf, outagesOf } from './happenings';
import type { Series } from './history';
import {
  Bands,
  Ends,
  Events,
  type Frame,
  Key,
  type LineTone,
  Lines,
  piecesOf,
  tickText,
  ticksOf,
  timesOf,
} from './plot';
import { clock, duration, measure, shortClock } from './text';

export interface ChartLine {
  readonly name: string;
  readonly values: Series;
  readonly tone: LineTone;
  readonly isArea?: boolean;
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

/** Numbers over a time, with outages as bands. The pointer or the arrow keys choose a time, whose numbers are shown. */
export function Chart({ label, history, lines, height = 214, format = measure }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [at, setAt] = useState<number>();
  const longest = useRange();
  const { outages, events, places, from, until } = useMemo(() => visibleOf(history, longest), [history, longest]);
  const { times } = history;
  const isNarrow = width < NARROW;
  const ticks = ticksOf(Math.max(0, ...places.flatMap((place) => lines.map(({ values }) => values[place] ?? 0))));
  const most = ticks.at(-1)!;
  const [top, bottom] = [outages.length > 0 ? TOP_OF_BANDS : TOP, height - BOTTOM];
  const right = width - (isNarrow ? RIGHT : ENDS);
  function x(time: number): number {
    return LEFT + ((Math.min(until, Math.max(from, time)) - from) / (until - from)) * (right - LEFT);
  }
  function y(value: number): number {
    return top + (1 - Math.min(value, most) / most) * (bottom - top);
  }
  const frame: Frame = { x, y, until, width, left: LEFT, right, top, bottom };
  function choose(index: number): void {
    setAt(places[Math.max(0, Math.min(places.length - 1, index))]);
  }
  function onPointerMove(event: PointerEvent): void {
    const left = event.clientX - box.current!.getBoundingClientRect().left;
    const after = places.findIndex((place) => x(times[place]!) >= left);
    choose(after === -1 ? places.length - 1 : after);
  }
  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === 'Escape') setAt(undefined);
    const steps: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    choose((at === undefined ? places.length - 1 : places.indexOf(at)) + step);
  }
  const place = at ?? places.at(-1);
  const last = lines.map(({ name, tone, values }) => ({ name, tone, value: values.at(-1) ?? null }));
  const chosen = lines.map(({ name, tone, values }) => ({
    name,
    tone,
    value: place === undefined ? null : values[place],
  }));
  const words = chosen.map(({ name, value }) => `${name} ${format(value)}`).join(', ');
  return (
    <div
      ref={box}
      class="plot"
      tabIndex={0}
      role="slider"
      aria-label={`${label}: ${summaryOf(lines, places, format)}`}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, places.length - 1)}
      aria-valuenow={Math.max(0, place === undefined ? 0 : places.indexOf(place))}
      aria-valuetext={`${place === undefined ? 'no sample yet' : clock(times[place]!)}: ${words}`}
      onPointerMove={onPointerMove}
      onPointerLeave={() => setAt(undefined)}
      onBlur={() => setAt(undefined)}
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
          <text key={time} x={x(time)} y={height - 8} text-anchor="middle">
            {shortClock(time)}
          </text>
        ))}
        <Bands outages={outages} frame={frame} />
        {lines.map(({ name, values, tone, isArea = false }) => (
          <g key={name} class={`line ${tone}`}>
            <Lines
              pieces={piecesOf(values, { ...history, places }, frame)}
              tone={tone}
              isArea={isArea}
              bottom={bottom}
            />
          </g>
        ))}
        <Events events={events} frame={frame} />
        {!isNarrow && (
          <Ends
            ends={last.map((end) => ({ ...end, text: end.value === null ? '' : format(end.value) }))}
            frame={frame}
          />
        )}
        {at !== undefined && <line class="crosshair" x1={x(times[at]!)} x2={x(times[at]!)} y1={top} y2={bottom} />}
      </svg>
      {at !== undefined && (
        // On the other half, so that it does not cover what it is about.
        <div class={`tip ${x(times[at]!) > width / 2 ? 'before' : 'after'}`}>
          <b>{clock(times[at]!)}</b>
          {chosen.map(({ name, tone, value }) => (
            <div key={name}>
              <Key tone={tone} name={name} /> <b>{format(value)}</b>
            </div>
          ))}
        </div>
      )}
      {isNarrow && (
        <div class="keys">
          {last.map(({ name, tone, value }) => (
            <span key={name}>
              <Key tone={tone} name={name} /> <b>{format(value)}</b>
            </span>
          ))}
        </div>
      )}
      {places.length === 0 && (
        <p class="empty">The first numbers are there {duration(history.interval)} after the start.</p>
      )}
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

/** What of a history is shown. */
function visibleOf(history: ChartProps['history'], range: number) {
  const { times, marks } = history;
  const [from, until] = spanOf(history, range);
  return {
    from,
    until,
    places: times.flatMap((time, place) => (time >= from ? [place] : [])),
    outages: outagesOf(marks).filter((outage) => (outage.until ?? until) > from && outage.from < until),
    events: happeningsOf(marks).filter(({ at }) => at >= from && at <= until),
  };
}

/** For those who do not see the lines. */
function summaryOf(lines: readonly ChartLine[], places: readonly number[], format: (value: number) => string): string {
  const texts = lines.map(({ name, values }) => {
    const known = places.map((place) => values[place] ?? null).filter((value) => value !== null);
    if (known.length === 0) return `${name}: no values`;
    return `${name}: ${format(known.at(-1)!)} now, from ${format(Math.min(...known))} to ${format(Math.max(...known))}`;
  });
  return texts.join('; ');
}
