// oxlint-disable no-unassigned-import -- both modules have effects when they are loaded
require('../../support/processes/typescript-hook.cjs');
require('../../../src/sources/rule-files/loading/rules-worker.ts');
