#!/usr/bin/env node
// Exits with 0 if the service with the same environment is healthy: the health check of containers, which have no
// shell.
import { callHttp } from '../net/call-http';
import { type LoadedSettings, readSettings } from '../settings/read-settings';
import { readSecretFile } from '../sources/secret-files';
import { messageOf } from '../text/thrown';
import { visible } from '../text/visible';
import { ownTls } from './api';

const TIMEOUT_MS = 5_000;

/** The addresses that mean every address of the machine, each with one of them that can be called. */
const LOOPBACK = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);

/**
 * Queries the health of the service with the same settings, on the debug listener: it is open from the start, and its
 * answer says what an unhealthy service waits for.
 *
 * @returns undefined when the service is healthy, else the reason in one line; also when the settings are invalid
 */
async function unhealthyReason(environment: NodeJS.ProcessEnv): Promise<string | undefined> {
  let settings: LoadedSettings['settings'];
  try {
    ({ settings } = readSettings(environment, readSecretFile));
  } catch (error) {
    return messageOf(error);
  }
  const { debugHost, debugPort: port, debugTlsCert } = settings;
  if (port === 0) return 'DEBUG_PORT is 0: set it to a port, so that the probe can find the debug listener';
  const host = LOOPBACK.get(debugHost) ?? debugHost;
  try {
    const tls = debugTlsCert === undefined ? undefined : ownTls(host, debugTlsCert);
    const { status, text } = await callHttp({ host, port, path: '/healthcheck', timeoutMs: TIMEOUT_MS, tls });
    return status === 200 ? undefined : `${status} ${text}`;
  } catch (error) {
    return `no answer of the debug listener on ${host} port ${port}: ${messageOf(error)}`;
  }
}

void unhealthyReason(process.env).then((reason) => {
  if (reason === undefined) return;
  process.stderr.write(`${visible(reason)}\n`);
  process.exitCode = 1;
});
