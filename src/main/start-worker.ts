import { secretsOf } from '../settings/secrets';
import { BoundedLines } from '../sinks/logs/bounded-lines';
import { describeError } from '../sinks/logs/describe-error';
import { standardStream } from '../sinks/standard-stream';
import { SecretMask } from '../text/secret-mask';
import { asError } from '../text/thrown';
import { PrimaryLink } from '../workers/worker/primary-link';
import { createApp } from './app';
import { forwardGrpcLibraryLogs } from './grpc-library';
import { collectOnOneThread, processCount } from './process';
import { runWorker } from './run-worker';

/**
 * Runs this process as a worker. What prevents it from running is reported to the primary, which logs it.
 *
 * @param environment the settings, which the primary has found to be valid and warned about
 * @param worker its number
 * @returns the exit code
 */
export async function startWorker(environment: NodeJS.ProcessEnv, worker: number): Promise<number> {
  collectOnOneThread();
  process.title = `weir: worker ${worker}`;
  const link = new PrimaryLink();
  const lines = new BoundedLines(standardStream(2));
  const secrets = new SecretMask(secretsOf(environment));
  try {
    const app = createApp(environment, { lines, secrets, worker });
    await forwardGrpcLibraryLogs(app);
    return await runWorker(app, { link, worker, workers: processCount(app.settings.workers) });
  } catch (error) {
    // The primary knows the secrets of files only as they were when it read them.
    link.report({ kind: 'failed', reason: secrets.hide(describeError(asError(error))) });
    return 1;
  } finally {
    await Promise.all([lines.flush(), link.flush()]);
  }
}
