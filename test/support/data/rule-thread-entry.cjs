// oxlint-disable no-unassigned-import -- both modules have effects when they are loaded
require('../processes/typescript-hook.cjs');
require('../../../src/sources/loading/rule-thread.ts');
