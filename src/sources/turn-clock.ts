/**
 * A clock that is read once in a callback of the event loop, whoever asks in it: milliseconds with fractions, from the start of
 * the process. Calls that arrive or are answered together share a reading, which makes it cheap enough to time every one;
 * what they differ by is how long the others before them took.
 */
export function turnClock(read: () => number = () => performance.now()): () => number {
  let now = 0;
  let isRead = false;
  const forget = (): void => {
    isRead = false;
  };
  return () => {
    if (!isRead) {
      now = read();
      isRead = true;
      // Runs when the callback is over, before the next one.
      queueMicrotask(forget);
    }
    return now;
  };
}
