import { DecisionError } from '../../../../limiter/decision-error';

const MAX_KEY_BYTES = 250;
/** A key of legal characters of ASCII, as most keys are: it is its own wire form. */
const PLAIN_KEY = /^[!-~]{1,250}$/;
/** Bytes of white space and control characters. Those above ASCII are part of a character. */
const ILLEGAL = /[\0-\x20\x7f]/;

/**
 * A key as memcached receives it: its bytes in UTF-8, one character for each. This form is written as Latin-1, and the server returns
 * it.
 */
export type WireKey = string;

/**
 * Converts a key, with the rules of the Go service's client: at most 250 bytes, without blanks and control characters. The server would
 * take what follows a blank for another word of the command, and what follows a line end for another command.
 *
 * @throws DecisionError `invalid_request` for any other key
 */
export function wireKey(key: string): WireKey {
  if (PLAIN_KEY.test(key)) return key;
  const wire = Buffer.from(key, 'utf8').toString('latin1');
  if (wire.length > MAX_KEY_BYTES) {
    throw illegalKey(`has ${wire.length} bytes, and memcached allows ${MAX_KEY_BYTES}`);
  }
  if (ILLEGAL.test(wire)) {
    throw illegalKey('contains white space or a control character, which memcached does not allow');
  }
  return wire;
}

function illegalKey(problem: string): DecisionError {
  return new DecisionError('invalid_request', `the key of a counter ${problem}`);
}
