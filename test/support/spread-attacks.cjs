// Jest begins with the files that took longest when it last ran, and without a record of that with the largest ones. Those of the attacks
// are the smallest and take longest: at the end, the others would be over while these still wait for time to pass.
const { default: Sequencer } = require('@jest/test-sequencer');

/** So many files are between two that are spread. */
const DISTANCE = 20;

/** Begins with the files of the attacks, and runs others next to each of them. */
module.exports = class SpreadAttacks extends Sequencer {
  async sort(tests) {
    const sorted = await super.sort(tests);
    const attacks = sorted.filter(({ path }) => path.includes('/test/attacks/'));
    const ordered = sorted.filter((test) => !attacks.includes(test));
    for (const [index, test] of attacks.entries()) ordered.splice(index * DISTANCE, 0, test);
    return ordered;
  }
};
