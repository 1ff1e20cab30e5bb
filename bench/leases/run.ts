// npm run bench:leases: see README.md.
import { join } from 'node:path';
import { renderSections } from '../suite/report/pages';
import { CASES } from './cases';
import { earlyDenials, simulateAll } from './report';

const table = earlyDenials(simulateAll(CASES));
renderSections(join(__dirname, 'README.md'), { leases: table });
console.log(table);
