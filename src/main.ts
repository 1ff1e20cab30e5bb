#!/usr/bin/env node
// oxlint-disable-next-line import/no-unassigned-import -- its effect must precede the loading of the other modules
import './main/early';
import { tolerateClosedPipes } from './cli/closed-pipes';
import { type App, createApp } from './main/app';
import { answerCommandLine } from './main/command-line';
import { forwardGrpcLibraryLogs } from './main/grpc-library';
import type { RunOptions } from './main/life';
import { collectOnOneThread, processCount } from './main/process';
import { runService } from './main/run';
import { managerNotifier } from './main/service-manager';
import { SettingsError } from './settings/read-settings';
import { secretsOf } from './settings/secrets';
import { BoundedLines } from './sinks/logs/bounded-lines';
import { createLogger, describeError } from './sinks/logs/logger';
import { standardStream } from './sinks/text-outputs';
import { SecretMask } from './text/secret-mask';
import { asError } from './text/thrown';
import { visible } from './text/visible';
import { workerNumber } from './workers/role';

/**
 * Runs the service until a signal ends it.
 *
 * @param onServing called when the listeners are open
 * After an aborted drain, the process ends within a second, if the caller does not end it before.
 *
 * @returns the exit code: 0 after a complete drain, 1 when the service cannot run or its drain was not complete
 */
export async function run(
  environment: NodeJS.ProcessEnv,
  onServing: RunOptions['onServing'] = () => undefined,
): Promise<number> {
  collectOnOneThread();
  const lines = new BoundedLines(standardStream(2));
  const secrets = new SecretMask(secretsOf(environment));
  let isAborted = false;
  try {
    const app = createApp(environment, { lines, secrets });
    for (const warning of app.warnings) app.log.warn(warning);
    if (app.ignored.length > 0)
      app.log.info('variables that have no effect here are ignored', { variables: app.ignored.join(' ') });
    return await runApp(app, environment, { onServing, onAborted: () => (isAborted = true) });
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    reportInvalidSettings(error, lines, secrets);
    return 1;
  } finally {
    await lines.flush();
    // A signal has asked for the end, and what the drain has waited for keeps the process: a request to the store, a file, a look-up of a name.
    if (isAborted) setTimeout(() => process.exit(1), LAST_SECOND).unref();
  }
}

/** Milliseconds that a program which has called {@link run} has after an aborted drain. */
const LAST_SECOND = 1000;

async function runApp(
  app: App,
  environment: NodeJS.ProcessEnv,
  callbacks: Omit<RunOptions, 'notifier'>,
): Promise<number> {
  try {
    await forwardGrpcLibraryLogs(app);
    const options = { notifier: await managerNotifier(app), ...callbacks };
    const workers = processCount(app.settings.workers);
    if (workers === 1) return await runService(app, options);
    const { runPrimary } = await import('./main/primary.js');
    return await runPrimary(app, { ...options, workers, fork: { program: __filename, environment } });
  } catch (error) {
    app.log.fatal(`the service cannot run: ${describeError(asError(error))}`);
    return 1;
  } finally {
    app.listeners.unsubscribe();
  }
}

/** Writes one text, or with LOG_FORMAT=json one log line for each problem. */
function reportInvalidSettings(
  { message, problems, logFormat }: SettingsError,
  lines: BoundedLines,
  { hide: mask }: SecretMask,
): void {
  if (logFormat === 'text') {
    lines.write(`${visible(mask(message))}\n`);
    return;
  }
  const log = createLogger({ level: 'fatal', format: logFormat, stream: lines, mask });
  for (const problem of problems) log.fatal(`invalid setting: ${problem}`);
}

/** What this process is: a worker of another one, the answer to its command line, or the service. */
function main(): void {
  const worker = workerNumber();
  if (worker !== undefined) {
    void import('./main/worker.js').then(({ startWorker }) => startWorker(process.env, worker)).then(exit);
    return;
  }
  const code = answerCommandLine(process.argv.slice(2), process);
  if (code === undefined) {
    void run(process.env).then(exit);
  } else {
    tolerateClosedPipes(process.stdout, process.stderr);
    process.exitCode = code;
  }
}

function exit(code: number): void {
  // After an aborted drain, sockets and timers may be left; the process does not wait for them.
  process.exit(code);
}

if (require.main === module) main();
