/**
 * Starts the time limit of a reply. Calls `onElapsed` when it is over, unless the returned function is called first.
 *
 * When the event loop has stood still, it runs timers before it reads sockets. `onElapsed` therefore waits until the sockets
 * were read once more: a reply that has arrived in time still counts.
 *
 * @param milliseconds from now on
 * @param onDue called before the sockets are read once more
 */
export function startReplyTimer(milliseconds: number, onElapsed: () => void, onDue?: () => void): () => void {
  let immediate: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    immediate = setImmediate(onElapsed);
    onDue?.();
  }, milliseconds);
  return () => {
    clearTimeout(timer);
    clearImmediate(immediate);
  };
}
