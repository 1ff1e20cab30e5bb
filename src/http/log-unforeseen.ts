import type { Log } from '../streams/log';

/** What Koa reports beside the answers: connections that broke while being answered, which is the callers' right. */
export function logUnforeseen(log: Log): (error: unknown) => void {
  return (error) => {
    log.debug('an HTTP connection broke', { error: error instanceof Error ? error : String(error) });
  };
}
