import { type DecisionErrorCode, DecisionError } from '../../../../limiter/decision-error';

/** What error codes of the server mean to a caller. */
const SENTENCES: Readonly<Record<string, string>> = {
  BUSY: 'the counter store is busy with a script',
  CLUSTERDOWN: 'the cluster of the counter store is down',
  CROSSSLOT: 'the counter store is a cluster, but is configured as a single server',
  LOADING: 'the counter store is still loading its data',
  MASTERDOWN: 'the counter store is a replica that has lost its master',
  MISCONF: 'the counter store refuses writes because it cannot save them',
  MOVED: 'the slot of a counter has moved to another node of the cluster',
  NOAUTH: 'the counter store asks for authentication',
  NOPERM: 'the user of the counter store lacks a permission',
  NOREPLICAS: 'the counter store refuses writes because it has too few replicas',
  OOM: 'the counter store is out of memory',
  READONLY: 'the counter store is a read-only replica',
  TRYAGAIN: 'the cluster of the counter store is moving the slot of a counter',
  WRONGPASS: 'the counter store refuses the credentials',
  WRONGTYPE: 'the key of a counter holds something else in the store',
};

const BEYOND_EXACT = 'a counter has reached 2^53 and cannot count further';
const NO_COUNT = 'the key of a counter holds something that is no whole number';

/** Whether the error is the server's reply: then the command was understood, refused, and not applied. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

/** What Redis before 7 puts before an error that a command in a script meets; the code follows, with its `-`. */
const PLACE_IN_SCRIPT = /^@user_script: ?\d+: -?/;

/** The first word of a server's error reply, `ERR` for what has none; empty for what is no reply. */
export function replyCode(error: unknown): string {
  if (!isReply(error)) return '';
  const said = error.message.replace(PLACE_IN_SCRIPT, '');
  // Redis before 7 has no code for this one.
  if (said.startsWith("The user executing the script can't run this command")) return 'NOPERM';
  return /^[A-Z][A-Z0-9_]*(?= |$)/.exec(said)?.[0] ?? 'ERR';
}

/** The error of a call whose step in the store failed. Neither credentials nor keys get into it. */
export function storeError(error: unknown): DecisionError {
  if (error instanceof DecisionError) return error;
  if (!isReply(error)) return failure('store_failed', 'the connection to the counter store was lost', error);
  return failure('store_failed', sentence(error), error);
}

export function noConnection(reason: Error | undefined): DecisionError {
  return failure('store_failed', 'there is no connection to the counter store', reason);
}

export function timedOut(): DecisionError {
  return new DecisionError('store_timeout', 'the counter store did not answer in time');
}

export function slotUnheld(): DecisionError {
  return new DecisionError('store_failed', 'no node of the cluster holds the slot of a counter');
}

export function poolEmpty(): DecisionError {
  return new DecisionError('store_pool_empty', 'every connection to the counter store was busy');
}

export function beyondExact(): DecisionError {
  return new DecisionError('store_failed', BEYOND_EXACT);
}

export function notACount(): DecisionError {
  return new DecisionError('store_failed', NO_COUNT);
}

/**
 * The error without what the client hangs on it: `command.args` holds the password of an AUTH and the keys of a script.
 */
export function bare(error: Error): Error {
  const copy = new Error(error.message);
  copy.name = error.name;
  return copy;
}

function sentence(error: Error): string {
  const code = replyCode(error);
  const known = SENTENCES[code];
  if (known !== undefined) return known;
  if (/would overflow/.test(error.message) || code === 'INEXACT') return BEYOND_EXACT;
  if (/not an integer/.test(error.message)) return NO_COUNT;
  return `the counter store answered with the error ${code}`;
}

function failure(code: DecisionErrorCode, message: string, cause: unknown): DecisionError {
  return new DecisionError(code, message, cause instanceof Error ? { cause: bare(cause) } : {});
}
