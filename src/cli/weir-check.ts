#!/usr/bin/env node
// Checks a folder of rule files without starting the service.
import { tolerateClosedPipes } from './closed-pipes';
import { runCheck } from './check/run-check';

tolerateClosedPipes(process.stdout, process.stderr);

void runCheck(process.argv.slice(2)).then(({ exitCode, stdout, stderr }) => {
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  process.exitCode = exitCode;
});
