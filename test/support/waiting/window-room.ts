/** How much of a window a handful of calls may take on a slow machine, in milliseconds. */
const ROOM = 5_000;

/** Waits, when a minute is about to end, for the next one: counts that a test compares must fall into one window. */
export async function roomInMinute(): Promise<void> {
  const left = 60_000 - (Date.now() % 60_000);
  if (left < ROOM) await new Promise((resolve) => setTimeout(resolve, left));
}
