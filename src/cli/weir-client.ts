#!/usr/bin/env node
import { runClient } from './client/run-client';

// Deprecation warnings of Node about a library do not help the user of the program.
process.noDeprecation = true;

void runClient(process.argv.slice(2), { stdout: process.stdout, stderr: process.stderr }).then((code) => {
  process.exitCode = code;
});
