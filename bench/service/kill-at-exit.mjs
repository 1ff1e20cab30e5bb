// Without a listener, a signal would end this process without its 'exit' event.
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));

/** Kills a child process when this process ends before it, also because of an error or a signal; then calls back. */
export function killAtExit(child, onKilled = () => undefined) {
  function kill() {
    child.kill('SIGKILL');
    onKilled();
  }
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
}
