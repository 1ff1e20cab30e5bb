import { SecretMask } from '../../src/text/secret-mask';

describe('SecretMask', () => {
  it('hides the permanent secrets and those that were added', () => {
    const mask = new SecretMask(['permanent']);
    const { hide } = mask;
    expect(hide('permanent added-1')).toBe('*** added-1');
    mask.add('one', ['added-1', 'another']);
    expect(hide('permanent added-1 another')).toBe('*** *** ***');
  });

  it('hides the previous secrets of a source, up to a number', () => {
    const mask = new SecretMask();
    const texts = Array.from({ length: 10 }, (_, index) => `secret-${index}`);
    for (const text of texts) mask.add('one', [text]);
    expect(mask.hide(texts.join(' '))).toBe(`secret-0 secret-1 ${Array(8).fill('***').join(' ')}`);
  });

  it('keeps the secret of a source, however often those of others change, and one that comes back', () => {
    const mask = new SecretMask();
    mask.add('quiet', ['seldom-changed']);
    for (let index = 0; index < 20; index += 1) {
      mask.add('busy', ['comes-back']);
      mask.add('busy', [`secret-${index}`]);
    }
    expect(mask.hide('seldom-changed comes-back secret-19')).toBe('*** *** ***');
  });
});
