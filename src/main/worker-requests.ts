import { profileResponder } from '../http/debug/profiles/profile-responder';
import type { Settings } from '../settings/settings';
import { extraLabels } from '../sinks/statistics/exposition/label-text';
import type { Log } from '../streams/ports/log';
import type { Channel } from '../workers/channel/channel';
import { type RequestHandler, answerRequests } from '../workers/channel/requests/answering';
import { type OperatorAnswers, operatorHandlers } from './operators/answer-operator';

export interface WorkerRequestsOptions {
  /** The number of this worker. */
  readonly worker: number;
  readonly settings: Settings;
  readonly log: Log;
  readonly operator: OperatorAnswers;
}

/**
 * Answers what the primary asks of this process: for operators, its profiles, and its metrics if there is a page for them.
 */
export async function answerPrimary(
  channel: Channel,
  { worker, settings, log, operator }: WorkerRequestsOptions,
): Promise<void> {
  const respond = profileResponder(log);
  const handlers: Record<string, RequestHandler> = {
    ...operatorHandlers(operator),
    debug: (parameters, signal) => {
      const response = respond((parameters as { readonly url: string }).url);
      signal.addEventListener('abort', () => response.destroy());
      return response;
    },
  };
  if (settings.usePullmetrics && !settings.disableStats) {
    // Loaded only when it is used. The extension is that of the compiled file, as in an ES module.
    const { processMetrics } = await import('../sinks/statistics/exposition/process-metrics.js');
    const metrics = processMetrics({ ...extraLabels(settings.extraTags), worker: String(worker) });
    handlers['process_metrics'] = async function* write() {
      yield await metrics.write();
    };
  }
  answerRequests(channel, handlers);
}
