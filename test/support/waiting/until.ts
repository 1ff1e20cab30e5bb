const TIMEOUT = 60_000;

/** Polls until the result is neither undefined nor false, and returns it; fails after the timeout, in milliseconds. */
export async function until<T>(
  what: string,
  poll: () => T | undefined | false | Promise<T | undefined | false>,
  timeout = TIMEOUT,
): Promise<T> {
  const deadline = Date.now() + timeout;
  for (;;) {
    const result = await poll();
    if (result !== undefined && result !== false) return result;
    if (Date.now() > deadline) throw new Error(`timed out waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
