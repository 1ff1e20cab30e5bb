import { DecisionError } from '../../../counting/decision-error';

/** Messages for callers, by the error code of the server. */
const MESSAGES: Readonly<Record<string, string>> = {
  BUSY: 'the counter store is busy with a script',
  CLUSTERDOWN: 'the cluster of the counter store is down',
  CROSSSLOT: 'the counter store is a cluster, but is configured as a single server',
  LOADING: 'the counter store is still loading its data',
  MASTERDOWN: 'the counter store is a replica that has lost its master',
  MISCONF: 'the counter store rejects writes because it cannot save them',
  MOVED: 'the slot of a counter has moved to another node of the cluster',
  NOAUTH: 'the counter store requires authentication',
  NOPERM: 'the user of the counter store lacks a permission',
  NOREPLICAS: 'the counter store rejects writes because it has too few replicas',
  OOM: 'the counter store is out of memory',
  READONLY: 'the counter store is a read-only replica',
  TRYAGAIN: 'the cluster of the counter store is moving the slot of a counter',
  WRONGPASS: 'the counter store rejects the credentials',
  WRONGTYPE: 'the key of a counter holds a value of another type in the store',
};

/** Codes of errors that concern one key and not the server. */
const KEY_ERRORS = new Set(['CROSSSLOT', 'ERR', 'MOVED', 'NOPERM', 'TRYAGAIN', 'WRONGTYPE']);

const NOT_AN_INTEGER = 'the key of a counter holds a value that is not an integer';

/**
 * A reply that its command cannot have. The connection cannot be used any more: what follows may be of another command,
 * too.
 */
export class InvalidReply extends Error {
  override readonly name = 'InvalidReply';

  /** @param problem continues “the reply to EVALSHA …”, or “a reply …” */
  constructor(
    readonly problem: string,
    command?: string,
  ) {
    super(`${command === undefined ? 'a reply' : `the reply to ${command.toUpperCase()}`} ${problem}`);
  }
}

/** Whether the error is a reply of the server: then the command was rejected and not applied. */
export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

/** The prefix that Redis before 7 puts before the error of a command in a script; the code follows, with its `-`. */
const SCRIPT_LINE = /^@user_script: ?\d+: -?/;

/** What a user may not do in a script: without a code before Redis 7, and with that of any error since. */
const NO_PERMISSION = /^(?:ERR )?(?:The user executing the script can't |ACL failure in script: )/;

/** The error code: the first word of an error reply, `ERR` for a reply without code, empty for other errors. */
export function replyCode(error: unknown): string {
  if (!isReply(error)) return '';
  const message = error.message.replace(SCRIPT_LINE, '');
  if (NO_PERMISSION.test(message)) return 'NOPERM';
  return /^[A-Z][A-Z0-9_]*(?= |$)/.exec(message)?.[0] ?? 'ERR';
}

/** The error of a call whose step in the store failed. It contains neither credentials nor keys. */
export function storeError(error: unknown): DecisionError {
  if (error instanceof DecisionError) return error;
  if (error instanceof InvalidReply) {
    const message = 'the counter store sent a reply that does not fit its command';
    return new DecisionError('store_failed', message, { cause: error });
  }
  if (!isReply(error)) {
    const cause = error instanceof Error ? withoutCommand(error) : undefined;
    return new DecisionError('store_failed', 'the connection to the counter store was lost', { cause });
  }
  return new DecisionError('store_failed', messageFor(error), {
    cause: withoutCommand(error),
    isKeyError: KEY_ERRORS.has(replyCode(error)),
    isUncounted: true,
  });
}

export function noConnection(reason: Error | undefined): DecisionError {
  const cause = reason && withoutCommand(reason);
  return new DecisionError('store_failed', 'there is no connection to the counter store', { cause, isUncounted: true });
}

/** Keys of one command are on two nodes, because their slot moves. */
export function slotMoving(): DecisionError {
  return new DecisionError('store_failed', MESSAGES.TRYAGAIN!, {
    isKeyError: true,
    isUncounted: true,
    isTryAgain: true,
  });
}

export function slotUnassigned(): DecisionError {
  return new DecisionError('store_failed', 'no cluster node holds the slot of a counter', { isUncounted: true });
}

export function notAnInteger(): DecisionError {
  return new DecisionError('store_failed', NOT_AN_INTEGER, { isKeyError: true });
}

/** A limit with an algorithm cannot be counted with plain commands. */
export function noScripts(): DecisionError {
  const message = 'the limit has an algorithm, which needs scripts, and the counter store rejects them';
  return new DecisionError('store_failed', message, { isKeyError: true });
}

/**
 * A copy without the properties that ioredis adds: `command.args` holds the password of an AUTH and the keys of a
 * script.
 */
export function withoutCommand(error: Error): Error {
  const copy = new Error(error.message);
  copy.name = error.name;
  return copy;
}

function messageFor(error: Error): string {
  const code = replyCode(error);
  const known = MESSAGES[code];
  if (known !== undefined) return known;
  if (/not an integer/.test(error.message)) return NOT_AN_INTEGER;
  return `the counter store replied with the error ${code}`;
}
