import { DecisionError } from '../../limiter/decision-error';
import type { Limiter } from '../../limiter/limiter';
import type { Offenders } from '../../limiter/offenders/offenders';
import type { DecisionOperator } from '../../streams/ports/operator';
import type { RequestHandler } from '../../workers/channel/requests/answering';
import { RequestError } from '../../workers/channel/requests/request-error';
import type { DecisionErrorDetail, WorkerMethods } from './ask-worker';

export interface OperatorAnswers {
  readonly decisions: DecisionOperator;
  readonly limiter: Pick<Limiter, 'forget'>;
  /** Undefined when they are not counted. */
  readonly offenders: Offenders | undefined;
}

type Answers = {
  readonly [M in keyof WorkerMethods]: (parameters: WorkerMethods[M][0]) => Promise<WorkerMethods[M][1]>;
};

const NO_OFFENDERS = { since: 0, floor: 0, offenders: [] };

/**
 * How a worker answers what `askWorker` asks in the primary. A key is forgotten as soon as the request is read, so that a request that was
 * cancelled while the worker stood still has its effect.
 */
export function operatorHandlers({
  decisions,
  limiter,
  offenders,
}: OperatorAnswers): Readonly<Record<keyof WorkerMethods, RequestHandler>> {
  const answers: Answers = {
    explain: ({ request }) => decisions.explain(request),
    read_counter: ({ query }) => decisions.readCounter(query),
    change_counter: ({ query, count }) => decisions.changeCounter(query, count),
    forget: async ({ cacheKey }) => {
      limiter.forget(cacheKey);
      return {};
    },
    offenders: async () => offenders?.summary(Math.floor(Date.now() / 1000)) ?? NO_OFFENDERS,
  };
  return {
    explain: jsonHandler(answers.explain),
    read_counter: jsonHandler(answers.read_counter),
    change_counter: jsonHandler(answers.change_counter),
    forget: jsonHandler(answers.forget),
    offenders: jsonHandler(answers.offenders),
  };
}

function jsonHandler(answer: (parameters: never) => Promise<unknown>): RequestHandler {
  return async function* respond(parameters) {
    try {
      yield JSON.stringify(await answer(parameters as never));
    } catch (error) {
      if (!(error instanceof DecisionError)) throw error;
      throw new RequestError(error.message, { code: error.code } satisfies DecisionErrorDetail);
    }
  };
}
