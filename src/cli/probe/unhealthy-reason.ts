import { get } from 'node:http';
import { type LoadedSettings, readSettings } from '../../settings/read-settings';
import { readSecretFile } from '../../sources/secret-file';
import { asError, messageOf } from '../../text/thrown';

/** The longest wait for the answer, in milliseconds. */
const TIMEOUT = 5_000;

/** The addresses that mean every address of the machine, each with one of them that can be called. */
const LOOPBACK = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);

/**
 * Asks the service with the same settings for its health, on the debug listener: it is open from the start, and its answer says what
 * an unhealthy service waits for.
 *
 * @returns undefined when the service is healthy, else the reason in one line; also when the settings are invalid
 */
export async function unhealthyReason(environment: NodeJS.ProcessEnv): Promise<string | undefined> {
  let settings: LoadedSettings['settings'];
  try {
    ({ settings } = readSettings(environment, readSecretFile));
  } catch (error) {
    return messageOf(error);
  }
  const { debugHost, debugPort: port } = settings;
  if (port === 0) return 'DEBUG_PORT is 0: set it to a port, so that the probe can find the debug listener';
  const host = LOOPBACK.get(debugHost) ?? debugHost;
  try {
    const { status, text } = await healthcheck(host, port);
    return status === 200 ? undefined : `${status} ${text}`;
  } catch (error) {
    return `no answer of the debug listener on ${host} port ${port}: ${messageOf(error)}`;
  }
}

/** What `/healthcheck` answers. Fails after {@link TIMEOUT}. */
function healthcheck(
  host: string,
  port: number,
): Promise<{ readonly status: number | undefined; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(TIMEOUT);
    get({ host, port, path: '/healthcheck', signal }, (response) => {
      let text = '';
      response
        .setEncoding('utf8')
        .on('data', (chunk: string) => (text += chunk))
        .on('end', () => resolve({ status: response.statusCode, text }))
        .on('error', reject);
    }).on('error', (error) => reject(signal.aborted ? asError(signal.reason) : error));
  });
}
