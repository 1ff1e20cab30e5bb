#!/usr/bin/env node
// Shows and changes what a running service does.
import { runAdmin } from './admin/run-admin';
import { tolerateClosedPipes } from './closed-pipes';

tolerateClosedPipes(process.stdout, process.stderr);

void runAdmin(process.argv.slice(2), process.env).then(({ exitCode, stdout, stderr }) => {
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  process.exitCode = exitCode;
});
