#!/usr/bin/env node
// Checks a folder of rule files without starting the service.
import { runCheck } from './check/run-check';

// `weir-check ... | head` closes the pipe before everything is written; that is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

void runCheck(process.argv.slice(2)).then(({ exitCode, stdout, stderr }) => {
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  process.exitCode = exitCode;
});
