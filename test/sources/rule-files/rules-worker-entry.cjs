// oxlint-disable no-unassigned-import -- both are modules that act when they are loaded
require('../../support/processes/typescript-hook.cjs');
require('../../../src/sources/rule-files/rules-worker.ts');
