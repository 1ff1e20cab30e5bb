import { attackTests } from './attack-tests';

attackTests('Files');
attackTests('Outputs, signals and clock');
