#!/usr/bin/env node
import { runClient } from './client/run-client';
import { tolerateClosedPipes } from './closed-pipes';

// Deprecation warnings of Node about a library do not help the user of the program.
process.noDeprecation = true;
tolerateClosedPipes(process.stdout, process.stderr);

void runClient(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  environment: process.env,
}).then((code) => {
  process.exitCode = code;
});
