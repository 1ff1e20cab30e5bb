import { replyCode, storeError } from '../../../src/sinks/counters/kvstore/connections/store-error';

function reply(message: string): Error {
  const error = new Error(message);
  error.name = 'ReplyError';
  return error;
}

describe('the error of a step in the store', () => {
  it.each([
    ['READONLY You may not write', 'READONLY', 'the counter store is a read-only replica'],
    // Redis 6.0 and 6.2 put the line of the script before the error of a command in it.
    ["@user_script: 6: -READONLY You can't write against a read only replica.", 'READONLY', 'is a read-only replica'],
    ["@user_script: 6: -OOM command not allowed when used memory > 'maxmemory'.", 'OOM', 'is out of memory'],
    ['@user_script:1: -MISCONF Redis is configured to save', 'MISCONF', 'because it cannot save them'],
    ["@user_script: 9: The user executing the script can't run this command or subcommand", 'NOPERM', 'a permission'],
    ['ERR value is not an integer or out of range', 'ERR', 'is not an integer'],
    ['something without a code', 'ERR', 'the counter store replied with the error ERR'],
  ])('for the reply “%s” has the code %s and a message for callers', (message, code, sentence) => {
    expect(replyCode(reply(message))).toBe(code);
    expect(storeError(reply(message))).toMatchObject({
      code: 'store_failed',
      message: expect.stringContaining(sentence) as unknown,
    });
  });

  it('has no code when the error is not a reply of the server', () => {
    expect(replyCode(new Error('READONLY'))).toBe('');
    expect(storeError(new Error('READONLY')).message).toBe('the connection to the counter store was lost');
  });
});
