// oxlint-disable no-unassigned-import -- both are modules that act when they are loaded
require('../../support/typescript-hook.cjs');
require('../../../src/sources/rule-files/rules-worker.ts');
