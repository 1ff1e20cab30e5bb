#!/usr/bin/env node
import { runClient } from './client/run-client';

// A library's use of Node is of no concern to whoever typed the command.
process.noDeprecation = true;

void runClient(process.argv.slice(2), process.stdout, process.stderr).then((code) => {
  process.exitCode = code;
});
