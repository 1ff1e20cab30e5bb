#!/usr/bin/env node
// Creates the controllers of the next API version.
import { runBump } from './bump/run-bump';
import { tolerateClosedPipes } from './closed-pipes';

tolerateClosedPipes(process.stdout, process.stderr);

void runBump(process.argv.slice(2)).then(({ exitCode, stdout, stderr }) => {
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  process.exitCode = exitCode;
});
