/** What to watch in one folder. */
export interface WatchPoint {
  /** Which folder was seen at the path: one that takes its place needs a watch of its own. */
  readonly identity: string;
  /** The names whose changes matter; undefined when every name does. */
  readonly names: ReadonlySet<string> | undefined;
}

/** By the real path of the folder. */
export type WatchPoints = ReadonlyMap<string, WatchPoint>;
