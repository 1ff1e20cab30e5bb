// oxlint-disable no-unassigned-import -- both are modules that act when they are loaded
require('../processes/typescript-hook.cjs');
require('../../../src/sources/xds/resources-worker.ts');
