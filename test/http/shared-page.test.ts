import { SharedPage } from '../../src/http/debug/shared-page';

/** A page whose generation the test lets go on: the n-th one is `page n`. */
class TestPage {
  begun = 0;
  ended = 0;
  #goOn: (() => void) | undefined;
  readonly page = new SharedPage(() => this.#generate());

  async *#generate(): AsyncIterableIterator<string> {
    const number = (this.begun += 1);
    yield 'page ';
    await new Promise<void>((resolve) => (this.#goOn = resolve));
    if (number === 3) throw new Error('broken');
    this.ended += 1;
    yield String(number);
  }

  async goOn(): Promise<void> {
    await new Promise(setImmediate);
    this.#goOn!();
  }
}

describe('a shared page', () => {
  it('is generated once for all who ask while another one is generated, and never at the same time', async () => {
    const test = new TestPage();
    const first = test.page.text();
    await new Promise(setImmediate);
    const others = Array.from({ length: 100 }, () => test.page.text());
    await test.goOn();
    expect(await first).toBe('page 1');
    await test.goOn();
    expect(new Set(await Promise.all(others))).toEqual(new Set(['page 2']));
    expect([test.begun, test.ended]).toEqual([2, 2]);
  });

  it('is generated again after a failure', async () => {
    const test = new TestPage();
    test.begun = 2;
    const failing = test.page.text();
    await new Promise(setImmediate);
    const next = test.page.text();
    await test.goOn();
    await expect(failing).rejects.toThrow('broken');
    await test.goOn();
    expect(await next).toBe('page 4');
  });
});
