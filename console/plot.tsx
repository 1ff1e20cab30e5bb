import type { History } from '../src/operators/live-answers';
import { type Happening, type Outage, outageText } from './happenings';
import type { Series } from './history';
import { Mark } from './icons';
import { clock, duration, measure } from './text';

/** What a line is: its colour. */
export type LineTone = 'pass' | 'over' | 'third' | 'rest' | 'failed' | 'odd';

/** Dashes of lines, in pixels: they are told apart without colours, too. */
const DASHES: Readonly<Partial<Record<LineTone, string>>> = { over: '6 3', failed: '6 3', third: '2 3' };

/** Where the lines of a chart are, in pixels, and how times and values are placed. */
export interface Frame {
  readonly x: (time: number) => number;
  readonly y: (value: number) => number;
  /** The last time that is shown. */
  readonly until: number;
  /** The width of the whole chart. */
  readonly width: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

interface LinesProps extends Pick<History, 'times' | 'interval'> {
  readonly values: Series;
  /** The area below the line ends at its bottom. */
  readonly frame: Pick<Frame, 'x' | 'y' | 'bottom'>;
  readonly tone?: LineTone;
  readonly isArea?: boolean;
}

/** A line, in pieces: there is a gap where there were no samples. */
export function Lines({ values, times, interval, frame: { x, y, bottom }, tone = 'pass', isArea = false }: LinesProps) {
  const pieces: string[][] = [];
  let before = -Infinity;
  for (const [index, time] of times.entries()) {
    const value = values[index] ?? undefined;
    if (value === undefined) continue;
    if (time - before > 2.5 * interval || values[index - 1] === null) pieces.push([]);
    pieces.at(-1)!.push(`${x(time).toFixed(1)},${y(value).toFixed(1)}`);
    before = time;
  }
  // A single sample is a dot.
  const lines = pieces.map((piece) => `M${piece.join('L')}${piece.length === 1 ? 'h.1' : ''}`);
  const areas = pieces.map((piece) => `M${piece[0]!.split(',')[0]},${bottom}L${piece.join('L')}V${bottom}Z`);
  return (
    <>
      {isArea && <path class="area" d={areas.join('')} />}
      <path d={lines.join('')} stroke-dasharray={DASHES[tone]} />
    </>
  );
}

/** Pixels of a character of a name of a band. */
const CHARACTER = 6.9;

/** Outages, with their two ends and, where there is room, their times. */
export function Bands({ outages, frame }: { readonly outages: readonly Outage[]; readonly frame: Frame }) {
  const { x, until: now, width, top, bottom } = frame;
  /** Where the texts before end. */
  let used = 0;
  return (
    <>
      {outages.map((outage, index) => {
        const { from, until } = outage;
        const [left, right] = [x(from), x(until ?? now)];
        const after = outages[index + 1] === undefined ? width : x(outages[index + 1]!.from);
        const short = until === undefined ? `down since ${clock(from)}` : `down ${duration(until - from)}`;
        const places = [outageText(outage), short].flatMap((text) => {
          const [ahead, behind] = [left + text.length * CHARACTER, right - text.length * CHARACTER];
          return [
            { text, at: left, anchor: 'start', end: ahead, hasRoom: left >= used && ahead < after } as const,
            { text, at: right, anchor: 'end', end: right, hasRoom: behind > used } as const,
          ];
        });
        const place = places.find(({ hasRoom }) => hasRoom);
        if (place !== undefined) used = place.end + 8;
        return (
          <g key={from} class="band">
            <rect x={left} y={top} width={Math.max(2, right - left)} height={bottom - top} fill="url(#hatch)" />
            <line x1={left} x2={left} y1={top - 6} y2={bottom} />
            {until !== undefined && <line x1={right} x2={right} y1={top - 6} y2={bottom} />}
            {place !== undefined && (
              <text x={place.at} y={top - 12} text-anchor={place.anchor}>
                {place.text}
              </text>
            )}
          </g>
        );
      })}
    </>
  );
}

/** What has happened, on the axis. What would cover another mark is next to it, as far as there is room. */
export function Events({ events, frame }: { readonly events: readonly Happening[]; readonly frame: Frame }) {
  const { x, right, top, bottom } = frame;
  let end = -Infinity;
  return (
    <>
      {events.toReversed().map(({ at, shape, title, text }) => {
        const left = Math.min(right, Math.max(x(at), end + 13));
        end = left;
        return (
          <g key={`${at} ${title} ${text}`} transform={`translate(${left - 6} ${bottom - 6})`}>
            {shape !== 'down' && shape !== 'back' && <line class="event" x1="6" x2="6" y1={top - bottom + 6} y2="0" />}
            <Mark shape={shape} />
            <title>{`${clock(at)} ${title}: ${text}`}</title>
          </g>
        );
      })}
    </>
  );
}

/** Pixels between two names. */
const GAP = 17;

interface EndsProps {
  readonly ends: readonly {
    readonly tone: LineTone;
    readonly name: string;
    readonly value: number | null | undefined;
  }[];
  readonly format: (value: number) => string;
  readonly frame: Frame;
}

/** The names of the lines and their last values, at their ends. */
export function Ends({ ends, format, frame: { y, right, bottom } }: EndsProps) {
  const sorted = ends.toSorted((one, other) => (other.value ?? 0) - (one.value ?? 0));
  const places: number[] = [];
  for (const { value } of sorted) places.push(Math.max(y(value ?? 0), (places.at(-1) ?? -GAP) + GAP));
  const over = Math.max(0, (places.at(-1) ?? 0) - bottom - 2);
  return (
    <>
      {sorted.map(({ tone, name, value }, index) => (
        <text key={name} class={`end ${tone}`} x={right + 8} y={places[index]! - over + 4}>
          {name}
          <tspan class="value" dx="6">
            {value !== null && value !== undefined && format(value)}
          </tspan>
        </text>
      ))}
    </>
  );
}

export function Key({ tone, name }: { readonly tone: LineTone; readonly name: string }) {
  return (
    <span class={`key ${tone}`}>
      <svg class="line" width="18" height="8" aria-hidden="true">
        <path d="M0 4h18" stroke-dasharray={DASHES[tone]} />
      </svg>
      {name}
    </span>
  );
}

/** The pattern of bands, once for all charts. */
export function Hatch() {
  return (
    <svg class="hatch" width="0" height="0" aria-hidden="true">
      <defs>
        <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect width="6" height="6" opacity=".09" />
          <rect width="1.5" height="6" opacity=".25" />
        </pattern>
      </defs>
    </svg>
  );
}

/** From 0 to at least the most, in two to four round steps. */
export function ticksOf(most: number): readonly number[] {
  if (!(most > 0)) return [0, 1];
  const power = 10 ** Math.floor(Math.log10(most / 2));
  const step = power * [1, 2, 2.5, 5, 10].find((each) => each * power * 4 >= most)!;
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, index) => index * step);
}

export function tickText(tick: number): string {
  return tick >= 1_000 ? measure(tick) : String(Number(tick.toPrecision(3)));
}

/** Round times, of which at most some have room. */
export function timesOf(from: number, until: number, most: number): readonly number[] {
  const step = [10, 30, 60, 120, 300, 600, 900].find((each) => (until - from) / each < most) ?? 1_800;
  const first = Math.ceil((from + step / 8) / step) * step;
  const length = Math.max(0, Math.floor((until - first) / step) + 1);
  return Array.from({ length }, (_, index) => first + index * step);
}
