/** Maps values to positions, with round numbers at which to draw a line. */
export interface Axis {
  at(value: number): number;
  readonly ticks: readonly number[];
}

/** From 0 to at least this value. */
export function linearAxis(highest: number, from: number, to: number): Axis {
  const step = roundStep(highest / 5);
  const count = Math.max(1, Math.ceil(highest / step));
  return {
    at: (value) => from + ((to - from) * value) / (count * step),
    ticks: Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12))),
  };
}

/** Powers of ten around these values. */
export function logarithmicAxis(lowest: number, highest: number, from: number, to: number): Axis {
  const first = Math.floor(Math.log10(lowest));
  const last = Math.max(first + 1, Math.ceil(Math.log10(highest)));
  return {
    at: (value) => from + ((to - from) * (Math.log10(Math.max(value, 10 ** first)) - first)) / (last - first),
    ticks: Array.from({ length: last - first + 1 }, (_, index) => Number((10 ** (first + index)).toPrecision(6))),
  };
}

/** 1, 2 or 5 times a power of ten, at least this much. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return (([1, 2, 5, 10] as const).find((factor) => factor * power >= least * (1 - 1e-9)) ?? 10) * power;
}
