#!/usr/bin/env node
// oxlint-disable-next-line import/no-unassigned-import -- its effect must precede the loading of the other modules
import './main/early';
import { tolerateClosedPipes } from './cli/closed-pipes';
import { type App, type Failing, withApp } from './main/app';
import { answerCommandLine } from './main/command-line';
import type { RunOptions } from './main/life';
import { processCount } from './main/process';
import { managerNotifier } from './main/service-manager';
import { runSingle } from './main/single';
import { SettingsError } from './settings/read-settings';
import { createLogger, describeError } from './sinks/logs/logger';
import { asError } from './text/thrown';
import { workerNumber } from './workers/role';

/**
 * Runs the service until a signal ends it. After an aborted drain, the process ends within a second, if the caller does
 * not end it before.
 *
 * @param onServing called when the listeners are open
 * @returns the exit code: 0 after a complete drain, 1 when the service cannot run or its drain was not complete
 */
export async function run(
  environment: NodeJS.ProcessEnv,
  onServing: RunOptions['onServing'] = () => undefined,
): Promise<number> {
  let isAborted = false;
  const callbacks = { onServing, onAborted: () => (isAborted = true) };
  const code = await withApp(environment, { run: (app) => runApp(app, environment, callbacks), failed: reportFailure });
  // A signal has asked for the end, and what the drain has waited for keeps the process: a request to the store, a
  // file, a look-up of a name.
  if (isAborted) setTimeout(() => process.exit(1), LAST_SECOND).unref();
  return code;
}

/** Milliseconds that a program which has called {@link run} has after an aborted drain. */
const LAST_SECOND = 1000;

async function runApp(
  app: App,
  environment: NodeJS.ProcessEnv,
  callbacks: Omit<RunOptions, 'notifier'>,
): Promise<0 | 1> {
  for (const warning of app.warnings) app.log.warn(warning);
  if (app.ignored.length > 0)
    app.log.info('variables that have no effect here are ignored', { variables: app.ignored.join(' ') });
  // Set by launch.ts.
  const { ignoredCache } = module as { readonly ignoredCache?: string };
  if (ignoredCache !== undefined)
    app.log.info('the code cache is ignored; the start takes longer', { reason: ignoredCache });
  const options = { notifier: await managerNotifier(app), ...callbacks };
  const workers = processCount(app.settings.workers);
  if (workers === 1) return runSingle(app, options);
  const { runPrimary } = await import('./main/primary.js');
  return runPrimary(app, { ...options, workers, fork: { program: __filename, environment } });
}

/** Logs why the service cannot run, with a line for each invalid setting. */
function reportFailure(error: unknown, { app, lines, secrets: { hide: mask } }: Failing): void {
  if (app !== undefined) return app.log.fatal(`the service cannot run: ${describeError(asError(error))}`);
  if (!(error instanceof SettingsError)) throw error;
  const log = createLogger({ level: 'fatal', format: error.logFormat, stream: lines, mask });
  for (const problem of error.problems) log.fatal(`invalid setting: ${problem}`);
  return undefined;
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
