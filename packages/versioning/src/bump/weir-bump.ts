#!/usr/bin/env node
// Creates the controllers of the next API version.
import { runBump } from './run';

for (const stream of [process.stdout, process.stderr]) {
  // The reader may have closed the pipe: `weir-bump --help | head -1`.
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}
const { exitCode, stdout, stderr } = runBump(process.argv.slice(2));
process.stdout.write(stdout);
process.stderr.write(stderr);
process.exitCode = exitCode;
