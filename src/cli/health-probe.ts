#!/usr/bin/env node
// Exits with 0 if the service with the same environment is healthy: the health check of containers, which have no shell.
import { visible } from '../text/visible';
import { unhealthyReason } from './probe/unhealthy-reason';

void unhealthyReason(process.env).then((reason) => {
  if (reason === undefined) return;
  process.stderr.write(`${visible(reason)}\n`);
  process.exitCode = 1;
});
