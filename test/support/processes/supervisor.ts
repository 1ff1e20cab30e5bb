/**
 * A shell script that runs the command in its arguments and prints a line `pid <number>`. It kills the command when its own standard
 * input ends, which happens also when the test process is killed.
 */
export const SUPERVISOR =
  'exec 3<&0; "$@" </dev/null & echo "pid $!"; cat <&3 >/dev/null; kill -9 $! 2>/dev/null; wait';
