/** The milliseconds that a few calls may take on a slow machine. */
const ROOM = 15_000;

/** When the minute is about to end, waits for the next one: counts that a test compares must be in one window. */
export async function roomInMinute(): Promise<void> {
  const left = 60_000 - (Date.now() % 60_000);
  if (left < ROOM) await new Promise((resolve) => setTimeout(resolve, left));
}
