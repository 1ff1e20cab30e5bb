import { runInNewContext } from 'node:vm';
import { asError, messageOf } from '../../src/text/thrown';

describe('asError and messageOf', () => {
  it('return a thrown error, and its message, unchanged', () => {
    const error = new TypeError('broken');
    expect(asError(error)).toBe(error);
    expect(messageOf(error)).toBe('broken');
  });

  it('recognize an error of another realm', () => {
    const error: unknown = runInNewContext("new TypeError('broken')");
    expect(asError(error)).toBe(error);
    expect(messageOf(error)).toBe('broken');
  });

  it.each([
    ['a text', 'a text'],
    [7, '7'],
    [undefined, 'undefined'],
  ])('make of %j the message %j', (thrown, message) => {
    expect(asError(thrown)).toEqual(new Error(message));
    expect(messageOf(thrown)).toBe(message);
  });
});
