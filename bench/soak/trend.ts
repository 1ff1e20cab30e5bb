/** A measurement at a time, in seconds. */
export type Point = readonly [seconds: number, value: number];

/** The slope of the straight line with the least squared distance to the points, per second; 0 for fewer than two points. */
export function slopeOf(points: readonly Point[]): number {
  const count = points.length;
  const meanTime = points.reduce((sum, [time]) => sum + time, 0) / count;
  const meanValue = points.reduce((sum, [, value]) => sum + value, 0) / count;
  const variance = points.reduce((sum, [time]) => sum + (time - meanTime) ** 2, 0);
  if (count < 2 || variance === 0) return 0;
  return points.reduce((sum, [time, value]) => sum + (time - meanTime) * (value - meanValue), 0) / variance;
}

export interface Trend {
  readonly median: number;
  /** The slope times the time between the first and the last point, as a share of the median. */
  readonly growth: number;
}

/** The trend of all points but those of the first third, in which a service still compiles its code and fills its caches. */
export function trendOf(points: readonly Point[]): Trend {
  const settled = points.slice(Math.floor(points.length / 3));
  const values = settled.map(([, value]) => value).toSorted((one, other) => one - other);
  const median = values[Math.floor(values.length / 2)] ?? NaN;
  const time = (settled.at(-1)?.[0] ?? 0) - (settled[0]?.[0] ?? 0);
  return { median, growth: (slopeOf(settled) * time) / median };
}
