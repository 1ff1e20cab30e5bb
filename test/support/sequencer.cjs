const { default: Sequencer } = require('@jest/test-sequencer');

/** Folders of tests that wait for processes. The file of a whole table may have few lines. */
const SLOW = /[/\\]test[/\\](?:attacks|e2e|integration)[/\\]/;

/** Where no earlier run has shown how long tests take, begins with those that wait: none is left alone at the end. */
module.exports = class extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    if (sorted.some(({ duration }) => duration !== undefined)) return sorted;
    return [true, false].flatMap((isSlow) => sorted.filter(({ path }) => SLOW.test(path) === isSlow));
  }
};
