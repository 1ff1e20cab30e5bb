import { isUtf8 } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';
import { readSmallFile } from '../net/reloaded-files';
import type { LoadedSettings } from '../settings/read-settings';
import type { Field, Settings } from '../settings/settings';
import { secretsOfText } from '../settings/secrets';
import { type ReadSecretFile, describeFile } from '../settings/variables';
import { ConditionLog } from '../log/condition-log';
import type { Log } from '../log/log';
import type { SecretMask } from '../text/secret-mask';
import { messageOf } from '../text/thrown';

/** Milliseconds between two reads of a file whose secret is not needed in the meantime. */
const CHECK_INTERVAL = 10_000;

/** Reads files of secrets, and masks what was read from then on. */
export function maskingReader(mask: SecretMask): ReadSecretFile {
  return (path, setting) => {
    const text = readSecretFile(path);
    mask.add(setting.name, secretsOfText(setting, text));
    return text;
  };
}

/**
 * A function that returns the value of a setting as it is now: that of its file, if it is in one. While the file cannot
 * be used, it is the last value, and the log has one line for each reason. The file is read at each call, and also from
 * time to time.
 *
 * @param problemOf why a value cannot replace the one at start; undefined when it can
 */
export function currentSecret<F extends Field>(
  { settings, files, readAgain }: LoadedSettings,
  field: F,
  {
    log,
    problemOf = () => undefined,
  }: { readonly log: Log; readonly problemOf?: (value: Settings[F]) => string | undefined },
): () => Settings[F] {
  let last = settings[field];
  const file = files.get(field);
  if (file === undefined) return () => last;
  const fields = { file: describeFile(file) };
  const unusable = new ConditionLog(log, {
    begins: 'cannot use the file of a secret; keeping its last value',
    ends: 'the file of a secret can be used again',
    fields,
  });
  function current(): Settings[F] {
    try {
      const value = readAgain(field);
      const problem = problemOf(value);
      if (problem !== undefined) throw new Error(problem);
      if (!isDeepStrictEqual(value, last)) log.info('the new value in the file of a secret is used', fields);
      last = value;
      unusable.ended();
    } catch (error) {
      unusable.because(messageOf(error));
    }
    return last;
  }
  // So that the log reports a file that cannot be used before its secret is needed.
  setInterval(current, CHECK_INTERVAL).unref();
  return current;
}

/** Bytes of a secret and the line feed after it: more than credentials or headers have. */
const MAX_FILE_BYTES = 64 * 1024;

/**
 * Reads a secret from a regular file of at most 64 KiB, without the line feed at its end. The path is resolved each
 * time, so that links that have been switched are followed. Synchronous, as the opening of the connections that need
 * the secret.
 *
 * @throws Error whose message says why there is no secret, and contains nothing of the file
 */
export function readSecretFile(path: string): string {
  const bytes = readSmallFile(path, MAX_FILE_BYTES);
  if (!isUtf8(bytes)) throw new Error('it is not text in UTF-8');
  return new TextDecoder().decode(bytes).replace(/\r?\n$/, '');
}
